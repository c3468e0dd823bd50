"""The API server misbehaves: counts stay, the loop goes on, and all heals by itself."""

import asyncio
import contextlib
from dataclasses import replace

import aiohttp
import pytest

from fleetline.entrypoints.run import Operator
from fleetline.errors import FleetlineError
from sim_cluster.processes import free_ports
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, EVENTS
from tests.entrypoints.world import AGENT, FLEETS, World


async def shown(port: int) -> str:
    """Exposition of the operator's own metrics."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        return await answer.text()


async def is_raised(world: World, name: str = "chat") -> bool:
    return await world.replicas(name) > 1


async def test_a_conflict_on_the_count_drops_the_turn_and_the_next_one_writes(
    world: World,
) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    fault = world.api.faults.fail(409, verb="patch", resource="deployments/scale", times=2)

    async with world.operator():
        await world.until(lambda: is_raised(world))

    assert fault.struck == 2
    assert world.writes("deployments/scale") == 3


async def test_a_conflict_on_the_status_is_tried_once_more(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    fault = world.api.faults.fail(409, verb="patch", resource="servingfleets/status", times=3)

    async with world.operator():

        async def told() -> bool:
            return (await world.condition("chat", "Ready"))[0] == "True"

        await world.until(told)

    assert fault.struck == 3


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_an_outage_of_reads_holds_and_heals(world: World, code: int) -> None:
    await world.add_fleet("chat", replicas=4)
    fault = world.api.faults.fail(code, verb="list", resource="pods", retry_after_s=1)

    async with world.operator() as task:
        await world.until(lambda: fault.struck > 8)
        held = await world.replicas("chat")
        world.api.faults.clear()

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)
        assert not task.done()

    assert held == 4


async def test_a_write_that_is_throttled_is_not_hammered(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    world.api.faults.fail(429, verb="patch", resource="servingfleets/status", retry_after_s=30)

    async with world.operator():
        await world.rounds(12)

    assert world.writes("servingfleets/status") == 1


async def test_a_hanging_write_of_one_fleet_delays_no_other(world: World) -> None:
    await world.add_fleet("stuck", replicas=1, rate_per_s=60.0)
    await world.add_fleet("free", replicas=1, rate_per_s=0.0)
    hang = world.api.faults.hang(verb="patch", resource="deployments/scale", times=1)

    async with world.operator():
        await world.until(lambda: hang.struck == 1)
        world.prometheus.loads[1].rate_per_s = 60.0
        await world.until(lambda: is_raised(world, "free"), 5)


async def test_a_hanging_list_is_given_up(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    world.api.faults.hang(verb="list", resource="pods", times=1)

    async with world.operator():
        await world.until(lambda: is_raised(world))


async def test_a_rotated_token_is_read_again(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    fault = world.api.faults.fail(401, user="admin", resource="servingfleets", verb="list", times=1)

    async with world.operator() as task:
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        assert not task.done()

    assert fault.struck == 1


async def test_a_silent_watch_is_made_up_for_by_the_list(world: World) -> None:
    world.api.faults.silent_watches(resource="servingfleets")

    async with world.operator():
        await world.until(lambda: world.reads() > 3)
        await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
        await world.until(lambda: is_raised(world))


async def test_a_storm_of_expired_watches_is_survived(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    storm = world.api.faults.expire_watches(resource="servingfleets")

    async with world.operator():
        await world.until(lambda: is_raised(world))
        await world.rounds(10)

    assert storm.struck < 20


async def test_events_that_cannot_be_written_stop_nothing(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    world.api.faults.fail(403, resource="events")

    async with world.operator():
        await world.until(lambda: is_raised(world))
        await world.until(lambda: world.writes("servingfleets/status") > 0)


@pytest.mark.parametrize(
    "resource", ["nodes", "horizontalpodautoscalers", "acceleratorprofiles", "scaledobjects"]
)
async def test_what_is_optional_may_be_forbidden(world: World, resource: str) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    world.api.faults.fail(403, resource=resource, user="admin")

    async with world.operator():
        await world.until(lambda: is_raised(world))


async def test_pods_that_may_not_be_read_leave_the_fleet_held(world: World) -> None:
    await world.add_fleet("chat", replicas=4)
    world.api.faults.fail(403, resource="pods", verb="list")

    async with world.operator():
        await world.rounds(12)

    assert await world.replicas("chat") == 4


async def test_fleets_that_may_not_be_read_end_the_operator_with_a_clear_error(
    world: World,
) -> None:
    world.api.faults.fail(403, resource="servingfleets")

    with pytest.raises(FleetlineError, match="must be allowed to read fleets"):
        await asyncio.wait_for(Operator(world.settings).run(), 20)


async def test_a_definition_that_is_not_installed_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetline.entrypoints.run.CRD_PATIENCE_S", 0.0)
    await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, None, "servingfleets.fleetline.dev")

    with pytest.raises(FleetlineError, match=r"servingfleets\.fleetline\.dev must be installed"):
        await asyncio.wait_for(Operator(world.settings).run(), 20)


async def test_a_fleet_that_is_deleted_is_forgotten_without_a_word(world: World) -> None:
    await world.add_fleet("chat", replicas=3)

    async with world.operator() as task:
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.client.delete(FLEETS, "default", "chat")
        await world.rounds(6)
        assert not task.done()

    assert await world.client.find(FLEETS, "default", "chat") is None
    assert await world.replicas("chat") == 3


async def test_who_loses_the_lease_stops_acting(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    (port,) = free_ports(1)
    world.settings = replace(
        world.settings, leader_election=True, identity="one", metrics_port=port
    )

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        led = await shown(port)
        world.api.faults.fail(500, resource="leases", user="admin")
        with contextlib.suppress(AssertionError):
            await world.until(lambda: False, 11)
        world.prometheus.loads[0].rate_per_s = 60.0
        await asyncio.sleep(1)
        stood_by = await shown(port)

        assert await world.replicas("chat") == 1
    assert 'fleetline_desired_replicas{fleet="chat"' in led
    assert 'fleetline_desired_replicas{fleet="chat"' not in stood_by
    assert "fleetline_leader 0.0" in stood_by
    assert world.api.request_counts.count(resource="leases", user_agent=AGENT) > 0


async def test_who_takes_the_lease_over_begins_with_the_status(world: World) -> None:
    await world.add_fleet("chat", replicas=4)
    one = replace(world.settings, leader_election=True, identity="one")
    two = replace(one, identity="two")
    world.settings = one
    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
    world.settings = two

    async with world.operator():

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)

    events, _ = await world.client.list(EVENTS, "default")
    assert "ExternalChange" not in {one["reason"] for one in events}


async def test_a_fleet_without_a_target_shows_no_old_numbers(world: World) -> None:
    (port,) = free_ports(1)
    world.settings = replace(world.settings, metrics_port=port)
    await world.add_fleet("chat", replicas=4, rate_per_s=1.0)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.client.delete(DEPLOYMENTS, "default", "chat")

        async def missing() -> bool:
            return await world.condition("chat", "AbleToScale") == ("False", "TargetNotFound")

        await world.until(missing)
        text = await shown(port)

    assert 'fleetline_current_replicas{fleet="chat",namespace="default"} NaN' in text
