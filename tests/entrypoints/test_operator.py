"""The operator against an API server and a Prometheus, both of which it reaches over HTTP."""

import asyncio

from sim_cluster.resources import DEPLOYMENTS, EVENTS, Resource
from tests.entrypoints.world import FLEETS, World, deployment, fleet

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")


def autoscaler(name: str) -> dict[str, object]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 3},
    }


async def test_load_raises_the_count(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)

    async with world.operator():

        async def raised() -> bool:
            return await world.replicas("chat") > 1

        await world.until(raised)


async def test_silence_lowers_the_count(world: World) -> None:
    await world.add_fleet("chat", replicas=6)

    async with world.operator():

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)


async def test_steady_state_writes_nothing(world: World) -> None:
    await world.add_fleet("chat", replicas=1, minReplicas=1)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.rounds(8)
        before = world.api.request_counts.writes(user_agent="fleetline")
        await world.rounds(15)

        assert world.api.request_counts.writes(user_agent="fleetline") == before


async def test_a_decision_is_told_in_status_and_an_event(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)

    async with world.operator():
        await world.until(lambda: world.writes("events") > 0)
        await world.rounds(2)

    status = await world.status("chat")
    events, _ = await world.client.list(EVENTS, "default")
    assert status["decision"]["reason"] == "Demand"
    assert status["currentReplicas"] == status["desiredReplicas"] == await world.replicas("chat")
    assert {one["reason"] for one in events} == {"ScaledUp"}


async def test_a_wrong_spec_that_slipped_in_holds_the_count(world: World) -> None:
    await world.add_fleet("chat", replicas=4, rate_per_s=0.0)
    await world.slip_in("chat", {"objectives": []})

    async with world.operator():

        async def told() -> bool:
            return await world.condition("chat", "Ready") == ("False", "InvalidSpec")

        await world.until(told)
        await world.rounds(10)

    assert await world.replicas("chat") == 4


async def test_a_target_that_comes_later_is_found(world: World) -> None:
    await world.client.create(FLEETS, fleet("late"))

    async with world.operator():

        async def missing() -> bool:
            return await world.condition("late", "AbleToScale") == ("False", "TargetNotFound")

        await world.until(missing)
        await world.client.create(DEPLOYMENTS, deployment("late", 1))

        async def found() -> bool:
            return (await world.condition("late", "AbleToScale"))[0] == "True"

        await world.until(found)


async def test_of_two_fleets_on_one_target_the_older_acts(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=0.0)
    younger = fleet("younger")
    younger["spec"]["scaleTargetRef"]["name"] = "chat"
    await asyncio.sleep(1.1)  # creation times have a resolution of one second
    await world.client.create(FLEETS, younger)

    async with world.operator():

        async def refuses() -> bool:
            return await world.condition("younger", "Ready") == ("False", "ConflictingOwner")

        await world.until(refuses)

        async def acts() -> bool:
            return (await world.condition("chat", "Ready"))[0] == "True"

        await world.until(acts)


async def test_a_scaler_on_the_same_target_is_left_to_it_until_it_is_gone(world: World) -> None:
    await world.add_fleet("chat", replicas=6)
    await world.client.create(AUTOSCALERS, autoscaler("chat"))

    async with world.operator():

        async def refuses() -> bool:
            return (await world.condition("chat", "Ready"))[1] == "ConflictingAutoscaler"

        await world.until(refuses)
        await world.rounds(10)

    assert await world.replicas("chat") == 6


async def test_no_finalizer_and_no_annotation_is_left_on_a_fleet(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.rounds(3)

    metadata = (await world.client.get(FLEETS, "default", "chat"))["metadata"]
    assert "finalizers" not in metadata
    assert "annotations" not in metadata
    assert world.writes("servingfleets") == 0


async def test_a_count_raised_by_a_person_is_respected_for_a_window(world: World) -> None:
    await world.add_fleet("chat", replicas=1)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.rounds(6)
        await world.set_replicas("chat", 7)
        await world.rounds(2)
        held = await world.replicas("chat")

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)

    events, _ = await world.client.list(EVENTS, "default")
    assert held == 7
    assert "ExternalChange" in {one["reason"] for one in events}


async def test_an_apply_that_drops_the_count_is_undone(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=200.0)

    async with world.operator():

        async def settled() -> bool:
            return await world.replicas("chat") >= 7

        await world.until(settled)
        await world.rounds(4)
        await world.set_replicas("chat", 1)
        await world.until(settled, 5)
