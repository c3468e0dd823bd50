"""
Which accelerator a node has, read from the labels of every vendor and cloud.

Order of trust: the vendor's own product label, then the cloud's accelerator label, then the
instance type. MIG slices, time-sliced GPUs and half cards come out as the device that a pod gets.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from fleetline.adapters.catalog import Catalog
from fleetline.errors import ObservationError
from fleetline.model.hardware import Accelerator

RESOURCES: Final = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "google.com/tpu",
)
"""Extended resources by which accelerators are counted."""

MIG_RESOURCE: Final = "nvidia.com/mig-"
"""Prefix of the resources of MIG slices under the `mixed` strategy."""

NVIDIA_PRODUCT: Final = "nvidia.com/gpu.product"
NVIDIA_MEMORY_MEBIBYTES: Final = "nvidia.com/gpu.memory"
NVIDIA_SHARED_REPLICAS: Final = "nvidia.com/gpu.replicas"
AMD_PRODUCTS: Final = ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name")
AMD_DEVICE_IDS: Final = ("amd.com/gpu.device-id", "beta.amd.com/gpu.device-id")
GKE: Final = "cloud.google.com/gke-accelerator"
GKE_TPU: Final = "cloud.google.com/gke-tpu-accelerator"
KARPENTER_NAMES: Final = (
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
)
KARPENTER_MEMORY_MEBIBYTES: Final = "karpenter.k8s.aws/instance-gpu-memory"
INSTANCE_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

COMPUTE_SLICES: Final = 7
"""A GPU under MIG has seven compute slices (four on A30 and RTX PRO 6000)."""
FEW_COMPUTE_SLICES: Final = {"A30": 4, "RTX-PRO-6000": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccelerator:
    """What a pod gets on a node for one unit of the resource, and how that is known."""

    accelerator: Accelerator
    resource: str
    count: int
    """Units that the node can allocate."""
    shared_by: int = 1
    """Pods that share one device by time slicing."""
    source: str
    """The label or instance type that told."""


def accelerator_of_node(
    catalog: Catalog, labels: Mapping[str, str], allocatable: Mapping[str, str]
) -> NodeAccelerator:
    """
    Identify the accelerator of a node.

    Parameters
    ----------
    catalog
        Known accelerators and their labels.
    labels
        Labels of the node.
    allocatable
        `status.allocatable` of the node.

    Raises
    ------
    ObservationError
        If the node allocates no accelerator, or none of its labels is known.
    """
    resource, count = _resource(allocatable)
    for source, key in _candidates(catalog, labels):
        entry = catalog.accelerators[key]
        if entry.accelerator is None:
            raise ObservationError(
                f"cannot size for accelerator {key} of {source}: its rates are not in the "
                "catalogue; add an AcceleratorProfile"
            )
        device = _fraction(entry.accelerator, 1 / entry.devices_per_card)
        profile = _mig_profile(labels, resource)
        return NodeAccelerator(
            accelerator=device if profile is None else _slice(device, key, profile),
            resource=resource,
            count=count,
            shared_by=_shared_by(labels),
            source=source,
        )
    told = {name: labels[name] for name in (NVIDIA_PRODUCT, GKE, *INSTANCE_TYPES) if name in labels}
    raise ObservationError(
        f"cannot read the accelerator from the node's labels: none is known, got {told or 'none'}"
    )


def _resource(allocatable: Mapping[str, str]) -> tuple[str, int]:
    for name in (*RESOURCES, *(key for key in allocatable if key.startswith(MIG_RESOURCE))):
        amount = allocatable.get(name, "0")
        if amount.isdigit() and int(amount) > 0:
            return name, int(amount)
    raise ObservationError("cannot read the accelerator from the node: it allocates none")


def _candidates(catalog: Catalog, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(label, catalogue key) for everything that matches, most trusted first."""
    for kind, sources, plain in VOCABULARIES:
        for source in sources:
            if source in labels:
                yield from sorted(
                    _matches(catalog, kind, source, plain(labels[source]), plain),
                    key=lambda match: _memory_error(catalog, labels, match),
                )
    for source in INSTANCE_TYPES:
        if source in labels:
            for key, entry in catalog.accelerators.items():
                patterns = entry.labels.get("instance_types", ())
                if any(fnmatch.fnmatch(labels[source], pattern) for pattern in patterns):
                    yield source, key


def _matches(
    catalog: Catalog, kind: str, source: str, told: str, plain: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    for key, entry in catalog.accelerators.items():
        if any(plain(name) == told for name in entry.labels.get(kind, ())):
            yield source, key


def _memory_error(catalog: Catalog, labels: Mapping[str, str], match: tuple[str, str]) -> float:
    """How far a candidate's memory is from what the labels say: one name may mean two sizes."""
    told = labels.get(KARPENTER_MEMORY_MEBIBYTES) or labels.get(NVIDIA_MEMORY_MEBIBYTES)
    accelerator = catalog.accelerators[match[1]].accelerator
    if not told or not told.isdigit() or accelerator is None:
        return 0.0
    return abs(int(told) * 2**20 / accelerator.memory_bytes - 1)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _nvidia_product(label: str) -> str:
    """Reduce `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED` to `h10080gbhbm3`."""
    product = re.sub(r"-SHARED$", "", label, flags=re.IGNORECASE)
    product = re.sub(r"-MIG-.*$", "", product, flags=re.IGNORECASE)
    return _plain(re.sub(r"^NVIDIA[-_ ]", "", product, flags=re.IGNORECASE))


def _mig_profile(labels: Mapping[str, str], resource: str) -> tuple[int, float] | None:
    """(compute slices, gigabytes) of a MIG slice, from the product label or the resource."""
    told = labels.get(NVIDIA_PRODUCT, "")
    if re.search(r"MIG-INVALID", told, flags=re.IGNORECASE):
        raise ObservationError(
            f"cannot read the accelerator from {NVIDIA_PRODUCT}: its MIG set-up is invalid ({told})"
        )
    found = re.search(r"mig-(\d+)g\.(\d+)gb", f"{told} {resource}", flags=re.IGNORECASE)
    return (int(found[1]), float(found[2])) if found else None


def _slice(whole: Accelerator, key: str, profile: tuple[int, float]) -> Accelerator:
    """MIG slice: compute by slices of seven, bandwidth by its share of the memory."""
    slices, gigabytes = profile
    share = slices / FEW_COMPUTE_SLICES.get(key, COMPUTE_SLICES)
    memory_share = min(1.0, gigabytes * 1e9 / whole.memory_bytes)
    sliced = _fraction(whole, share)
    return replace(
        sliced,
        name=f"{whole.name}-MIG-{slices}g.{gigabytes:g}gb",
        memory_bytes=whole.memory_bytes * memory_share,
        bandwidth_bytes_per_s=whole.bandwidth_bytes_per_s * memory_share,
        interconnect_bytes_per_s=None,  # slices cannot talk to each other over NVLink
    )


def _fraction(whole: Accelerator, share: float) -> Accelerator:
    """Part of a card: every rate and the memory in proportion."""
    if share == 1:
        return whole

    def part(rate: float | None) -> float | None:
        return None if rate is None else rate * share

    return replace(
        whole,
        memory_bytes=whole.memory_bytes * share,
        bandwidth_bytes_per_s=whole.bandwidth_bytes_per_s * share,
        bf16_flop_per_s=whole.bf16_flop_per_s * share,
        fp8_flop_per_s=part(whole.fp8_flop_per_s),
        fp4_flop_per_s=part(whole.fp4_flop_per_s),
        int8_flop_per_s=part(whole.int8_flop_per_s),
        interconnect_bytes_per_s=part(whole.interconnect_bytes_per_s),
    )


def _shared_by(labels: Mapping[str, str]) -> int:
    """Pods on one device: the number of time slices that the device plugin hands out."""
    told = labels.get(NVIDIA_SHARED_REPLICAS, "1")
    shared = labels.get(NVIDIA_PRODUCT, "").upper().endswith("-SHARED")
    return max(1, int(told)) if told.isdigit() and (shared or int(told) > 1) else 1


VOCABULARIES: Final[tuple[tuple[str, tuple[str, ...], Callable[[str], str]], ...]] = (
    ("nvidia_product", (NVIDIA_PRODUCT,), _nvidia_product),
    ("amd_device_id", AMD_DEVICE_IDS, _plain),
    ("amd_product", AMD_PRODUCTS, _plain),
    ("gke", (GKE,), _plain),
    ("gke_tpu", (GKE_TPU,), _plain),
    ("karpenter", KARPENTER_NAMES, _plain),
)
"""Label families in order of trust: catalogue field, node labels, how to compare spellings."""
