"""Which nodes there are: accelerators by catalogue name, announced in the labels of a provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

from sim_cluster.nodes import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetline.model.hardware import Accelerator

Provider = Literal["gpu-operator", "gke", "karpenter", "amd", "cpu"]

SIMULATED_LABEL: Final = "sim.fleetline.dev/simulated"
ACCELERATOR_ANNOTATION: Final = "sim.fleetline.dev/accelerator"

RESOURCES: Final = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "habana.ai/gaudi",
    "google": "google.com/tpu",
    "aws": "aws.amazon.com/neuron",
}
"""Extended resource by which each vendor's accelerators are counted."""
_MEBIBYTES_PER_GIGABYTE: Final = 1024  # labels count the nominal gigabytes of a card as binary
_CPU_PER_ACCELERATOR: Final = 24
_MEMORY_GIBIBYTES_PER_ACCELERATOR: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Some nodes of one kind."""

    accelerator: str = "H100-SXM"
    """Name in the product's catalogue; ignored by provider `cpu`."""
    count: int = 1
    accelerators_per_node: int = 8
    provider: Provider = "gpu-operator"
    """Whose labels tell the accelerator: NVIDIA's GPU operator, GKE, Karpenter, AMD's, none."""
    name: str = ""
    """Prefix of the nodes' names; empty: after the accelerator."""
    instance_type: str = ""
    """Empty: the first that the catalogue knows."""
    zone: str = "sim-a"
    pods_per_node: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Prefix of the nodes' names."""
        kind = "cpu" if self.provider == "cpu" else self.accelerator
        return self.name or f"sim-{kind.lower().replace('_', '-')}"

    def names(self) -> list[str]:
        """Names of all the nodes."""
        return [f"{self.prefix}-{index}" for index in range(self.count)]


def read_node_specs(path: Path) -> list[NodeSpec]:
    """Read a YAML list of nodes with the fields of `NodeSpec`."""
    raw = yaml.safe_load(path.read_text())
    known = set(NodeSpec.__dataclass_fields__)
    for index, one in enumerate(raw):
        if unknown := set(one) - known:
            raise ValueError(
                f"{path.name}[{index}] must have fields of {', '.join(sorted(known))}, "
                f"got {', '.join(sorted(unknown))}"
            )
    return [NodeSpec(**one) for one in raw]


def carried_by(spec: NodeSpec) -> Accelerator | None:
    """Look up what these nodes carry; None for nodes without accelerators."""
    if spec.provider == "cpu":
        return None
    return catalog.accelerator(spec.accelerator).accelerator


def manifest(spec: NodeSpec, name: str) -> dict[str, Any]:
    """Write the Node object without its status."""
    annotations = {} if spec.provider == "cpu" else {ACCELERATOR_ANNOTATION: spec.accelerator}
    return {
        "metadata": {"name": name, "labels": _labels(spec, name), "annotations": annotations},
        "spec": {"providerID": f"sim://{name}"},
    }


def allocatable(spec: NodeSpec) -> dict[str, str]:
    """Resources that pods may ask for on one node."""
    count = 0 if spec.provider == "cpu" else spec.accelerators_per_node
    resources = {
        "cpu": str(max(count * _CPU_PER_ACCELERATOR, 16)),
        "memory": f"{max(count * _MEMORY_GIBIBYTES_PER_ACCELERATOR, 64)}Gi",
        "ephemeral-storage": "2000Gi",
        "pods": str(spec.pods_per_node),
    }
    if count:
        vendor = catalog.accelerator(spec.accelerator).accelerator.vendor
        resources[RESOURCES[vendor]] = str(count)
    return resources


def _labels(spec: NodeSpec, name: str) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "sim",
        "topology.kubernetes.io/zone": spec.zone,
        SIMULATED_LABEL: "true",
    }
    if spec.provider != "cpu":
        entry = catalog.accelerator(spec.accelerator)
        labels |= {"node.kubernetes.io/instance-type": _instance_type(spec, entry)}
        labels |= _accelerator_labels(spec, entry)
    return {**labels, **spec.labels}


def _instance_type(spec: NodeSpec, entry: catalog.CatalogEntry) -> str:
    known = (one for one in entry.labels.get("instance_types", ()) if "*" not in one)
    return spec.instance_type or next(known, f"sim-{entry.accelerator.name.lower()}")


def _accelerator_labels(spec: NodeSpec, entry: catalog.CatalogEntry) -> dict[str, str]:
    count = str(spec.accelerators_per_node)
    mebibytes = str(int(entry.memory_gigabytes * _MEBIBYTES_PER_GIGABYTE))
    if spec.provider == "gpu-operator":
        return {
            "nvidia.com/gpu.product": _spelling(spec, entry, "nvidia_product"),
            "nvidia.com/gpu.memory": mebibytes,
            "nvidia.com/gpu.count": count,
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/mig.capable": "true" if entry.has_slices else "false",
        }
    if spec.provider == "gke":
        return {
            "cloud.google.com/gke-accelerator": _spelling(spec, entry, "gke"),
            "cloud.google.com/gke-accelerator-count": count,
            "cloud.google.com/gke-nodepool": spec.prefix,
        }
    if spec.provider == "karpenter":
        return {
            "karpenter.k8s.aws/instance-gpu-name": _spelling(spec, entry, "karpenter"),
            "karpenter.k8s.aws/instance-gpu-manufacturer": entry.accelerator.vendor,
            "karpenter.k8s.aws/instance-gpu-count": count,
            "karpenter.k8s.aws/instance-gpu-memory": mebibytes,
            "karpenter.sh/nodepool": spec.prefix,
        }
    return {
        "amd.com/gpu.product-name": _spelling(spec, entry, "amd_product"),
        "amd.com/gpu.device-id": _spelling(spec, entry, "amd_device_id"),
        "amd.com/gpu.vram": f"{entry.memory_gigabytes:g}G",
    }


def _spelling(spec: NodeSpec, entry: catalog.CatalogEntry, source: str) -> str:
    names = entry.labels.get(source)
    if not names:
        raise ValueError(
            f"provider must be one that announces {spec.accelerator}, got {spec.provider!r}"
        )
    return names[0]
