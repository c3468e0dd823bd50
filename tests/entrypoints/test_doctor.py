"""`fleetline doctor` about fleets: their targets, accelerators and rivals."""

from typing import Any

import pytest

from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from tests.entrypoints.examining import bad, doctor, of
from tests.entrypoints.test_unusual_targets import GROUPS, definition
from tests.entrypoints.world import FLEETS, World, fleet

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
NODES = Resource("", "v1", "nodes", "Node")


async def test_all_is_well_beside_a_running_operator(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)
    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)

    findings, code = await doctor(world)

    assert bad(findings) == []
    assert code == 0
    assert {"definition", "permission", "target", "rivals", "replica", "prometheus", "clock"} | {
        *("series", "coverage", "scrape", "arrivals", "objective", "lengths", "accelerator")
    } <= {one["check"] for one in findings}


async def test_doctor_writes_nothing_but_questions(world: World) -> None:
    await world.add_fleet("chat")
    before = world.api.request_counts.writes(user_agent="fleetline")

    await doctor(world)

    asked = world.api.request_counts.writes(user_agent="fleetline") - before
    assert asked == world.writes("selfsubjectaccessreviews")


async def test_a_wrong_spec_is_told_with_its_field(world: World) -> None:
    await world.add_fleet("chat")
    await world.slip_in("chat", {"maxReplicas": 0})

    findings, _ = await doctor(world)

    assert "spec.maxReplicas must be" in of(findings, "spec", "chat")["says"]


async def test_a_missing_target_fails(world: World) -> None:
    await world.client.create(FLEETS, fleet("chat"))

    findings, code = await doctor(world)

    assert code == 1
    assert of(findings, "target", "chat")["says"].startswith("cannot find Deployment chat")


async def test_a_target_at_zero_is_a_warning(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    await world.set_replicas("chat", 0)

    findings, _ = await doctor(world)

    assert "scaling is off" in of(findings, "target", "chat")["says"]


async def test_a_kind_that_is_not_served_fails(world: World) -> None:
    reference = {"apiVersion": "example.com/v1", "kind": "Swarm", "name": "chat"}
    await world.client.create(FLEETS, fleet("chat", scaleTargetRef=reference))

    findings, code = await doctor(world)

    assert code == 1
    assert of(findings, "target", "Swarm chat")["state"] == "failed"


async def test_a_scale_without_a_selector_is_a_warning(world: World) -> None:
    await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    group = {"metadata": {"name": "moe", "namespace": "default"}, "spec": {"replicas": 1}}
    await world.client.create(GROUPS, group)
    reference = {"apiVersion": "example.dev/v1", "kind": "ServingGroup", "name": "moe"}
    await world.client.create(FLEETS, fleet("moe", scaleTargetRef=reference))

    findings, _ = await doctor(world)

    assert "no selector" in of(findings, "target", "ServingGroup moe")["says"]
    assert of(findings, "permission", "scale of servinggroups/moe")["state"] == "ok"


async def test_an_autoscaler_on_the_same_target_fails(world: World) -> None:
    await world.add_fleet("chat")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    autoscaler = {
        "metadata": {"name": "rival", "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 3},
    }
    await world.client.create(AUTOSCALERS, autoscaler)

    findings, code = await doctor(world)

    assert code == 1
    assert "HorizontalPodAutoscaler rival" in of(findings, "rivals", "chat")["says"]


async def test_an_accelerator_that_nobody_tells_fails_with_the_field_to_set(world: World) -> None:
    await world.add_fleet("chat", accelerator=None)

    findings, code = await doctor(world)

    assert code == 1
    assert "spec.accelerator.name" in of(findings, "accelerator", "chat")["mend"]


async def test_a_node_with_an_unknown_accelerator_is_told(world: World) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-Z9000"}
    node = {"metadata": {"name": "odd", "labels": labels}}
    await world.client.create(NODES, node)
    status = {"allocatable": {"nvidia.com/gpu": "8"}}
    await world.client.patch(NODES, None, "odd", {"status": status}, subresource="status")

    findings, code = await doctor(world)

    assert code == 0
    assert "NVIDIA-Z9000" in of(findings, "accelerator", "node odd")["says"]


LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


def lease(holder: str, renewed: str) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "fleetline", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("held", "state", "says"),
    [
        pytest.param(None, "ok", "there is none", id="one replica"),
        pytest.param(lease("one", "2100-01-01T00:00:00.000000Z"), "ok", "one leads", id="held"),
        pytest.param(lease("", "2026-01-01T00:00:00.000000Z"), "warning", "nobody", id="released"),
        pytest.param(
            lease("one", "2026-01-01T00:00:00.000000Z"), "failed", "nobody decides", id="run out"
        ),
    ],
)
async def test_the_lease_is_looked_at(
    world: World, held: dict[str, Any] | None, state: str, says: str
) -> None:
    if held is not None:
        await world.client.create(LEASES, held)

    findings, code = await doctor(world, prometheus=False)

    found = of(findings, "lease")
    assert (found["state"], code) == (state, 1 if state == "failed" else 0)
    assert says in found["says"]


async def test_without_a_url_metrics_are_said_not_to_be_checked(world: World) -> None:
    await world.add_fleet("chat")

    findings, code = await doctor(world, prometheus=False)

    assert code == 0
    assert of(findings, "prometheus")["says"] == "not checked: no URL was given"
