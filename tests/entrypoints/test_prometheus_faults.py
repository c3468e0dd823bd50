"""Prometheus misbehaves: nothing is lowered, the loop stays on time, and all heals by itself."""

from collections.abc import Callable

import pytest

from tests.entrypoints.fake_prometheus import Fault, answering, drip, flood, hang
from tests.entrypoints.world import World

PARTIAL = '{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial"]}'
ERROR = '{"status":"error","errorType":"execution","error":"secret tenant data"}'

FAULTS = [
    pytest.param(hang, "PrometheusUnreachable", id="it hangs"),
    pytest.param(drip, "PrometheusUnreachable", id="it drips"),
    pytest.param(flood, "", id="it floods"),
    pytest.param(answering(401, "no"), "Unauthorized", id="401"),
    pytest.param(answering(403, "no"), "Unauthorized", id="403"),
    pytest.param(answering(200, "<html>login</html>"), "BadResponse", id="a login page"),
    pytest.param(answering(200, ERROR), "QueryError", id="an error with status 200"),
    pytest.param(answering(200, "null"), "BadResponse", id="null"),
    pytest.param(answering(302, "", Location="http://127.0.0.1:1/"), "BadResponse", id="redirect"),
    pytest.param(
        answering(503, "later", **{"Retry-After": "3600"}), "PrometheusUnreachable", id="503"
    ),
    pytest.param(answering(429, "slow down"), "PrometheusUnreachable", id="429"),
    pytest.param(answering(200, PARTIAL), "NoSeries", id="nothing, with a warning"),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
async def test_a_fault_holds_the_count_says_why_and_heals(
    world: World, fault: Fault, reason: str
) -> None:
    await world.add_fleet("chat", replicas=4)
    world.prometheus.fault = fault

    async with world.operator() as task:

        async def told() -> bool:
            status, why = await world.condition("chat", "MetricsAvailable")
            return status == "False" and (not reason or why == reason)

        await world.until(told)
        await world.rounds(6)
        held = await world.replicas("chat")
        ready = await world.condition("chat", "Ready")
        said = str(await world.status("chat"))
        world.prometheus.fault = None

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)
        assert not task.done()

    assert held == 4
    assert ready[0] == "True"
    assert "secret" not in said
    assert "login" not in said


async def test_a_refused_connection_holds_the_count_and_heals(world: World) -> None:
    await world.add_fleet("chat", replicas=4)
    await world.prometheus.stop()

    async with world.operator():

        async def told() -> bool:
            return (await world.condition("chat", "MetricsAvailable"))[0] == "False"

        await world.until(told)
        held = await world.replicas("chat")
        await world.prometheus.start_again()

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)

    assert held == 4


@pytest.mark.parametrize("nonsense", ["NaN", "+Inf", "-Inf", "1e308", "abc", None, 7, [], {}])
async def test_nonsense_for_numbers_never_lowers(world: World, nonsense: object) -> None:
    await world.add_fleet("chat", replicas=4)
    world.prometheus.values = lambda _: nonsense

    async with world.operator() as task:
        await world.rounds(12)
        assert not task.done()

    assert await world.replicas("chat") == 4


async def test_a_partial_answer_raises_and_never_lowers(world: World) -> None:
    load = await world.add_fleet("chat", replicas=4)
    world.prometheus.warnings = ["some stores did not answer"]

    async with world.operator():
        await world.rounds(12)
        held = await world.replicas("chat")
        load.rate_per_s = 200.0

        async def raised() -> bool:
            return await world.replicas("chat") > 4

        await world.until(raised)

    assert held == 4


async def test_three_of_eight_pods_never_lower(world: World) -> None:
    load = await world.add_fleet("chat", replicas=8)
    load.pods = lambda: world.pods["chat"][:3]

    async with world.operator():
        await world.rounds(15)

    assert await world.replicas("chat") == 8


def stand_still(world: World) -> None:
    world.prometheus.loads[0].frozen = ["chat-abc-0"]


def all_stand_still(world: World) -> None:
    world.prometheus.loads[0].frozen = list(world.pods["chat"])


def clock_ahead(world: World) -> None:
    world.prometheus.clock_ahead_s = 600.0


def clock_behind(world: World) -> None:
    world.prometheus.clock_ahead_s = -600.0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(stand_still, "Frozen", id="one exporter hangs"),
        pytest.param(all_stand_still, "Frozen", id="all exporters hang"),
        pytest.param(clock_ahead, "ClockSkew", id="ten minutes ahead"),
        pytest.param(clock_behind, "ClockSkew", id="ten minutes behind"),
    ],
)
async def test_a_doubtful_view_holds_says_why_and_heals(
    world: World, fault: Callable[[World], None], reason: str
) -> None:
    await world.add_fleet("chat", replicas=4)
    fault(world)

    async with world.operator():

        async def told() -> bool:
            return await world.condition("chat", "MetricsAvailable") == ("False", reason)

        await world.until(told)
        await world.rounds(12)
        held = await world.replicas("chat")
        world.prometheus.loads[0].frozen = []
        world.prometheus.clock_ahead_s = 0.0

        async def lowered() -> bool:
            return await world.replicas("chat") == 1

        await world.until(lowered)

    assert held == 4


async def test_series_of_pods_that_are_gone_do_not_count(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    world.prometheus.loads.append(
        type(world.prometheus.loads[0])("default", lambda: ["chat-abc-old"], rate_per_s=500.0)
    )

    async with world.operator():
        await world.rounds(12)

    assert await world.replicas("chat") == 1


async def test_few_queries_whatever_the_number_of_fleets(world: World) -> None:
    for index in range(12):
        await world.add_fleet(f"chat-{index}", replicas=1)

    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") >= 12)
        await world.rounds(1)
        before, rounds = world.prometheus.requests, world.reads()
        await world.rounds(6)

        sent = world.prometheus.requests - before
        assert sent <= 12 * (world.reads() - rounds + 1)
