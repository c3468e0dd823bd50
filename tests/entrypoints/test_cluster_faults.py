"""The cluster changes under the operator's feet: writes fail, targets go, lists are old."""

import asyncio
from dataclasses import replace

import pytest

from fleetline.adapters import manifest
from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.scale import TargetError
from fleetline.adapters.snapshot import SnapshotReader
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS
from tests.entrypoints.world import FLEETS, World, deployment

QUOTA = {
    "type": "ReplicaFailure",
    "status": "True",
    "reason": "FailedCreate",
    "message": "exceeded quota: gpus, limited: requests.nvidia.com/gpu=2",
}


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_writes_that_fail_for_a_while_are_made_up_for(world: World, code: int) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    fault = world.api.faults.fail(code, verb="patch", resource="deployments/scale")

    async with world.operator() as task:
        await world.until(lambda: fault.struck >= 3)
        held = await world.replicas("chat")
        world.api.faults.clear()

        async def raised() -> bool:
            return await world.replicas("chat") > 1

        await world.until(raised)
        assert not task.done()

    assert held == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # cut connections
async def test_an_api_server_that_cannot_be_reached_is_waited_for(world: World) -> None:
    await world.add_fleet("chat", replicas=4)

    async with world.operator() as task:
        await world.rounds(2)
        await world.api.__aexit__(None, None, None)
        await asyncio.sleep(2)
        assert not task.done()
        await world.api.__aenter__()

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)


async def test_a_target_that_is_deleted_and_made_anew_is_scaled_on(world: World) -> None:
    await world.add_fleet("chat", replicas=4, rate_per_s=1.0)

    async with world.operator() as task:
        await world.rounds(3)
        await world.client.delete(DEPLOYMENTS, "default", "chat")

        async def missing() -> bool:
            return await world.condition("chat", "AbleToScale") == ("False", "TargetNotFound")

        await world.until(missing)
        written = world.writes("deployments/scale")
        await world.rounds(3)
        assert world.writes("deployments/scale") == written
        await world.client.create(DEPLOYMENTS, deployment("chat", 1))
        world.prometheus.loads[0].rate_per_s = 60.0

        async def raised() -> bool:
            return await world.replicas("chat") > 1

        await world.until(raised)
        assert not task.done()


async def test_a_quota_that_refuses_pods_stops_the_raise_and_is_told(world: World) -> None:
    load = await world.add_fleet("chat", replicas=2)
    await world.set_replicas("chat", 4)
    status = {"status": {"conditions": [QUOTA]}}
    await world.client.patch(DEPLOYMENTS, "default", "chat", status, subresource="status")
    load.rate_per_s = 400.0

    async with world.operator():

        async def told() -> bool:
            return await world.condition("chat", "ScalingLimited") == ("True", "CapacityShortage")

        await world.until(told)
        await world.rounds(6)

    assert await world.replicas("chat") == 4


@pytest.mark.parametrize("changed", ["count", "spec"])
async def test_what_changed_since_the_list_drops_the_write(world: World, changed: str) -> None:
    await world.add_fleet("chat", replicas=2)
    api = ApiClient(world.kubeconfig, deadline_s=5.0)
    await api.connect()
    try:
        view = await SnapshotReader(api, ()).read()
        one = manifest.parse(view.fleets[0])
        cluster = KubernetesCluster(api, load_catalog())
        cluster.look_at(view, [one])
        target = await cluster.read_target(one.fleet)
        if changed == "count":
            await world.set_replicas("chat", 7)
        else:
            await world.client.patch(FLEETS, "default", "chat", {"spec": {"maxReplicas": 3}})

        with pytest.raises(TargetError) as refused:
            await cluster.write_replicas(one.fleet, target, 5)
    finally:
        await api.close()

    assert refused.value.reason == {"count": "TargetChanged", "spec": "SpecChanged"}[changed]
    assert await world.replicas("chat") == {"count": 7, "spec": 2}[changed]


async def test_a_restart_loop_moves_nothing(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    async with world.operator():
        await world.rounds(3)
    await world.set_replicas("chat", 5)

    for _ in range(5):
        async with world.operator():
            await world.rounds(2)

    assert await world.replicas("chat") == 5
    assert world.writes("deployments/scale") == 0


async def test_a_pause_during_a_restart_counts_and_so_does_its_end(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
    await world.client.patch(FLEETS, "default", "chat", {"spec": {"mode": "Paused"}})
    world.prometheus.loads[0].rate_per_s = 60.0

    async with world.operator():

        async def paused() -> bool:
            return await world.condition("chat", "ScalingActive") == ("False", "Paused")

        await world.until(paused)
        held = await world.replicas("chat")
    await world.client.patch(FLEETS, "default", "chat", {"spec": {"mode": "Auto"}})

    async with world.operator():

        async def raised() -> bool:
            return await world.replicas("chat") > 1

        await world.until(raised)

    assert held == 1


async def test_a_definition_that_drops_fields_of_the_status_causes_no_endless_writes(
    world: World,
) -> None:
    name = "servingfleets.fleetline.dev"
    whole = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)
    properties = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for gone in ("metricSources", "decision"):
        properties["status"]["properties"].pop(gone)
    await world.client.replace(CUSTOM_RESOURCE_DEFINITIONS, whole)
    await world.add_fleet("chat", replicas=1, rate_per_s=1.0)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.rounds(10)
        before = world.writes("servingfleets/status")
        await world.rounds(10)

        assert world.writes("servingfleets/status") == before


async def test_many_fleets_deleted_at_once_are_forgotten_quietly(world: World) -> None:
    names = [f"chat-{index}" for index in range(20)]
    for name in names:
        await world.add_fleet(name, replicas=1)
    world.settings = replace(world.settings, period_s=0.5)

    async with world.operator() as task:
        await world.until(lambda: world.writes("servingfleets/status") >= len(names))
        await asyncio.gather(*(world.client.delete(FLEETS, "default", name) for name in names))
        await world.rounds(1)
        before = world.api.request_counts.writes(user_agent="fleetline")
        await world.rounds(4)
        assert not task.done()

        assert world.api.request_counts.writes(user_agent="fleetline") == before
