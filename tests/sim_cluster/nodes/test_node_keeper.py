"""Simulated nodes announce themselves and stay alive as real ones do."""

from pathlib import Path
from typing import Any

import pytest

from sim_cluster.nodes import NodeSpec, read_node_specs, simulate
from sim_cluster.nodes.node_specs import allocatable, manifest
from sim_cluster.resources import LEASES, NODES
from sim_cluster.traffic.arrivals import Arrival

LEASE_NAMESPACE = "kube-node-lease"


@pytest.mark.parametrize(
    ("spec", "label", "value"),
    [
        pytest.param(
            NodeSpec(accelerator="H100-SXM"),
            "nvidia.com/gpu.product",
            "NVIDIA-H100-80GB-HBM3",
            id="GPU operator",
        ),
        pytest.param(
            NodeSpec(accelerator="H100-SXM", provider="gke"),
            "cloud.google.com/gke-accelerator",
            "nvidia-h100-80gb",
            id="GKE",
        ),
        pytest.param(
            NodeSpec(accelerator="H100-SXM", provider="karpenter"),
            "karpenter.k8s.aws/instance-gpu-name",
            "h100",
            id="Karpenter",
        ),
        pytest.param(
            NodeSpec(accelerator="MI300X", provider="amd"),
            "amd.com/gpu.product-name",
            "AMD_Instinct_MI300X_OAM",
            id="AMD",
        ),
        pytest.param(
            NodeSpec(accelerator="L4"), "nvidia.com/gpu.memory", "24576", id="memory in MiB"
        ),
        pytest.param(
            NodeSpec(accelerator="H100-SXM", accelerators_per_node=4),
            "nvidia.com/gpu.count",
            "4",
            id="count",
        ),
    ],
)
def test_the_accelerator_is_announced_in_the_providers_words(
    spec: NodeSpec, label: str, value: str
) -> None:
    assert manifest(spec, "node-0")["metadata"]["labels"][label] == value


@pytest.mark.parametrize(
    ("spec", "resource"),
    [
        (NodeSpec(accelerator="H100-SXM"), "nvidia.com/gpu"),
        (NodeSpec(accelerator="MI300X", provider="amd"), "amd.com/gpu"),
    ],
)
def test_accelerators_are_allocatable_under_the_vendors_resource(
    spec: NodeSpec, resource: str
) -> None:
    assert allocatable(spec)[resource] == "8"


def test_a_provider_that_does_not_know_the_accelerator_is_refused() -> None:
    with pytest.raises(ValueError, match="provider must be"):
        manifest(NodeSpec(accelerator="MI300X", provider="gke"), "node-0")


def test_nodes_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("- {accelerator: L4, count: 3}\n- {provider: cpu, name: worker}\n")

    specs = read_node_specs(file)

    assert [name for spec in specs for name in spec.names()] == [
        *("sim-l4-0", "sim-l4-1", "sim-l4-2"),
        "worker-0",
    ]


def test_an_unknown_field_of_a_node_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("- {gpus: 3}\n")

    with pytest.raises(ValueError, match="got gpus"):
        read_node_specs(file)


async def test_a_node_is_ready_and_offers_its_accelerators(cluster: Any, client: Any) -> None:
    async with simulate(client, [NodeSpec(count=1)]):
        status = (await cluster.node())["status"]

    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions["Ready"] == "True"
    assert status["allocatable"]["nvidia.com/gpu"] == "8"


async def test_leases_are_renewed_until_the_node_falls_silent(client: Any, until: Any) -> None:
    async def renewed(name: str) -> str:
        return str((await client.get(LEASES, LEASE_NAMESPACE, name))["spec"]["renewTime"])

    async with simulate(client, [NodeSpec(count=2)], renewal_s=0.1) as sim:
        sim.faults.silence_node("sim-h100-sxm-1")
        silent, lively = await renewed("sim-h100-sxm-1"), await renewed("sim-h100-sxm-0")
        for _ in range(3):
            lively = await until_newer(renewed, "sim-h100-sxm-0", lively, until)
        after = await renewed("sim-h100-sxm-1")

    # a renewal that was under way when the node fell silent may still arrive
    assert after == silent or after < lively


async def until_newer(renewed: Any, name: str, than: str, until: Any) -> str:
    async def newer() -> bool:
        return await renewed(name) > than

    await until(newer)
    return str(await renewed(name))


async def test_requests_of_a_lost_node_are_served_elsewhere(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, [NodeSpec(count=2)], startup="0s", speed=10) as sim:
        await cluster.bind("chat-0", node="sim-h100-sxm-0")
        await cluster.bind("chat-1", node="sim-h100-sxm-1")
        await cluster.until_ready("chat-0", "chat-1")
        await cluster.announce("chat-0", "chat-1")
        router = await sim.router("chat", balance="round-robin")
        router.begin(Arrival(0.0, 500, 2000) for _ in range(10))
        await until(lambda: router.in_flight == 10)

        await sim.faults.remove_node("sim-h100-sxm-0")
        await router.drain()

        assert sum(record.reroutes for record in router.truth.records) == 5
        assert router.truth.finished == 10
    assert await client.find(NODES, None, "sim-h100-sxm-0") is None
    assert await cluster.pod("chat-0") is None


async def test_nodes_can_be_taken_away_at_the_end(client: Any) -> None:
    async with simulate(client, [NodeSpec(count=2)], remove_nodes_at_end=True):
        pass

    nodes, _ = await client.list(NODES)
    assert nodes == []


async def test_nodes_that_exist_are_taken_over(client: Any) -> None:
    async with simulate(client, [NodeSpec(count=2)]):
        pass

    async with simulate(client, [NodeSpec(count=2)]) as sim:
        assert sim.keeper.nodes == ["sim-h100-sxm-0", "sim-h100-sxm-1"]


async def test_pods_of_a_node_that_comes_back_serve_again(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, [NodeSpec(count=1)], startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        sim.faults.silence_node("sim-h100-sxm-0")
        cut_off = dict(sim.pool.replicas)
        sim.faults.restore_node("sim-h100-sxm-0")
        await until(lambda: ("default", "chat-0") in sim.pool.replicas)

    assert cut_off == {}


async def test_pods_that_were_bound_before_are_taken_in(cluster: Any, client: Any) -> None:
    await cluster.bind("chat-0")

    async with simulate(client, [NodeSpec(count=1)], startup="0s"):
        await cluster.until_ready("chat-0")
