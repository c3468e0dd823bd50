"""The accelerator of a node: every vendor's labels, slices, shared devices and what is unknown."""

import pytest

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.node_labels import accelerator_of_node
from fleetline.errors import ObservationError

ONE_NVIDIA = {"nvidia.com/gpu": "8"}
CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "H100-SXM"),
        ({"nvidia.com/gpu.product": "nvidia-h100-80gb-hbm3"}, "H100-SXM"),
        ({"nvidia.com/gpu.product": "Tesla-T4"}, "T4"),
        ({"nvidia.com/gpu.product": "A100-SXM4-80GB"}, "A100-SXM-80GB"),
        ({"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}, "L4"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "H100-SXM"),
        ({"karpenter.k8s.aws/instance-gpu-name": "h200"}, "H200"),
        (
            {
                "karpenter.k8s.aws/instance-gpu-name": "a100",
                "karpenter.k8s.aws/instance-gpu-memory": "81920",
            },
            "A100-SXM-80GB",
        ),
        (
            {
                "karpenter.k8s.aws/instance-gpu-name": "a100",
                "karpenter.k8s.aws/instance-gpu-memory": "40960",
            },
            "A100-SXM-40GB",
        ),
        ({"node.kubernetes.io/instance-type": "g6e.12xlarge"}, "L40S"),
        ({"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"}, "H100-SXM"),
    ],
)
def test_nvidia_nodes(labels: dict[str, str], name: str) -> None:
    assert accelerator_of_node(CATALOG, labels, ONE_NVIDIA).accelerator.name == name


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "MI300X"),
        ({"amd.com/gpu.product-name": "Instinct-MI300X"}, "MI300X"),
        ({"beta.amd.com/gpu.device-id": "74a5"}, "MI325X"),
        ({"amd.com/gpu.product-name": "Instinct_MI210"}, "MI210"),
    ],
)
def test_amd_nodes(labels: dict[str, str], name: str) -> None:
    assert accelerator_of_node(CATALOG, labels, {"amd.com/gpu": "8"}).accelerator.name == name


def test_a_pod_gets_half_of_an_mi250() -> None:
    found = accelerator_of_node(
        CATALOG, {"amd.com/gpu.product-name": "AMD_Instinct_MI250"}, {"amd.com/gpu": "8"}
    )

    whole = CATALOG.accelerator("MI250")
    assert found.accelerator.memory_bytes == whole.memory_bytes / 2
    assert found.accelerator.bandwidth_bytes_per_s == whole.bandwidth_bytes_per_s / 2


@pytest.mark.parametrize(
    ("labels", "allocatable"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"}, {"nvidia.com/gpu": "2"}),
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/mig-3g.40gb": "2"}),
    ],
    ids=["single strategy", "mixed strategy"],
)
def test_a_mig_slice_has_its_share(labels: dict[str, str], allocatable: dict[str, str]) -> None:
    found = accelerator_of_node(CATALOG, labels, allocatable)

    whole = CATALOG.accelerator("H100-SXM")
    assert found.accelerator.memory_bytes == pytest.approx(40e9)
    assert found.accelerator.bf16_flop_per_s == pytest.approx(whole.bf16_flop_per_s * 3 / 7)
    assert found.accelerator.bandwidth_bytes_per_s == pytest.approx(1.675e12)
    assert found.count == 2


def test_a_time_sliced_device_says_by_how_many_it_is_shared() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"}

    assert accelerator_of_node(CATALOG, labels, ONE_NVIDIA).shared_by == 4


@pytest.mark.parametrize(
    ("labels", "allocatable", "message"),
    [
        ({}, {"nvidia.com/gpu": "8"}, "none is known"),
        ({"nvidia.com/gpu.product": "NVIDIA-X1"}, {"nvidia.com/gpu": "8"}, "NVIDIA-X1"),
        ({"nvidia.com/gpu.product": "NVIDIA-L4"}, {"cpu": "8"}, "allocates none"),
        (
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID"},
            {"nvidia.com/gpu": "8"},
            "MIG set-up is invalid",
        ),
    ],
    ids=["no label", "unknown product", "no accelerator", "MIG misconfigured"],
)
def test_what_is_not_known_is_said(
    labels: dict[str, str], allocatable: dict[str, str], message: str
) -> None:
    with pytest.raises(ObservationError, match=message):
        accelerator_of_node(CATALOG, labels, allocatable)
