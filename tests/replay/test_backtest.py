"""A backtest: the operator's turn over a target that never was, with what was measured."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from fleetline.control.memory import Memory
from fleetline.control.ports import Pod, Reading, unknown
from fleetline.replay.backtest import Backtest, Imagined, Moment, Outcome
from fleetline.replay.backtest_report import report
from tests.control.fakes import OBJECTIVE, a_fleet, a_replica, seen

PERIOD_S = 15.0
BEGIN_S = 3600.0


def ran(count: int) -> tuple[Pod, ...]:
    return tuple(
        Pod(name=f"r-{index}", created_s=-9e3, ready_since_s=-9e3) for index in range(count)
    )


async def walk(
    rate_per_s: Callable[[float], float | None], count: int, hours: float, **changes: Any
) -> list[Outcome]:
    """An hour of watching, then some hours of deciding."""
    target = Imagined(replica=a_replica(), unknown_because="", startup_s=180.0)
    backtest = Backtest(a_fleet(), target, Memory(), begin_s=BEGIN_S, period_s=PERIOD_S)
    outcomes = []
    for step in range(int((BEGIN_S + hours * 3600.0) / PERIOD_S)):
        at_s = step * PERIOD_S
        rate = rate_per_s(at_s)
        view = seen(rate or 0.0, replicas=count, **changes)
        if rate is None:
            view = seen(0.0, arrival_rate_per_s=unknown("no series"))
        outcome = await backtest.step(Moment(at_s=at_s, pods=ran(count), seen=view))
        if outcome is not None:
            outcomes.append(outcome)
    return outcomes


async def test_steady_arrivals_need_one_count_that_carries_them() -> None:
    outcomes = await walk(lambda _: 60.0, 12, hours=1.0)

    told = report(
        outcomes, period_s=PERIOD_S, startup_s=180.0, accelerators=2, price_usd_per_hour=3.0
    )

    assert outcomes[0].at_s == BEGIN_S
    assert outcomes[-1].replicas < 12
    assert told.fleetline.windows_above_ceiling == 0
    assert told.ran.gpu_hours == pytest.approx(24.0)
    assert told.ran.cost_usd == pytest.approx(72.0)
    assert told.fleetline.gpu_hours < told.ran.gpu_hours
    assert len(told.windows) == 12


async def test_a_fleet_that_was_too_small_is_seen_above_its_ceiling() -> None:
    outcomes = await walk(lambda _: 200.0, 2, hours=1.0)

    told = report(
        outcomes, period_s=PERIOD_S, startup_s=180.0, accelerators=1, price_usd_per_hour=None
    )

    assert told.ran.windows_above_ceiling == 12
    assert told.fleetline.windows_above_ceiling <= 3
    assert told.fleetline.most_replicas > 2
    assert told.fleetline.cost_usd is None


async def test_what_was_added_serves_only_after_a_start() -> None:
    outcomes = await walk(lambda at_s: 20.0 if at_s < 2 * BEGIN_S else 150.0, 2, hours=2.0)
    rise = next(one for one in outcomes if one.at_s >= 2 * BEGIN_S and one.replicas > 2)
    ready = next(one for one in outcomes if one.at_s > rise.at_s and one.ready_replicas > 2)

    assert ready.at_s - rise.at_s == pytest.approx(180.0, abs=PERIOD_S)
    assert max(one.backlog_requests for one in outcomes) > 0
    assert outcomes[-1].backlog_requests == 0


async def test_hours_without_metrics_lower_nothing() -> None:
    outcomes = await walk(lambda at_s: 100.0 if at_s < 2 * BEGIN_S else None, 8, hours=3.0)
    before = next(one for one in reversed(outcomes) if one.at_s < 2 * BEGIN_S)

    assert min(one.replicas for one in outcomes if one.at_s >= 2 * BEGIN_S) >= before.replicas
    assert outcomes[-1].arrival_rate_per_s is None


async def test_arrivals_that_were_seen_in_part_lower_nothing() -> None:
    outcomes = await walk(lambda _: 1.0, 6, hours=1.0, reporting_replicas=4)

    assert {one.replicas for one in outcomes} == {6}


async def test_what_ran_is_judged_by_what_was_measured() -> None:
    late = await walk(
        lambda _: 5.0, 2, hours=0.5, latency_percentiles_s={str(OBJECTIVE): Reading(1)}
    )
    none = await walk(lambda _: 5.0, 2, hours=0.5)

    def missed(outcomes: list[Outcome]) -> int | None:
        return report(
            outcomes, period_s=PERIOD_S, startup_s=0.0, accelerators=1, price_usd_per_hour=None
        ).windows_missed_as_measured

    assert missed(late) == 6
    assert missed(none) is None


def test_replicas_are_paid_for_while_they_start() -> None:
    def outcome(at_s: float, count: int) -> Outcome:
        return Outcome(
            at_s=at_s,
            arrival_rate_per_s=1.0,
            ran_replicas=count,
            ran_ceiling_per_s=math.inf,
            ran_missed=None,
            replicas=count,
            ready_replicas=count,
            ceiling_per_s=math.inf,
            backlog_requests=0.0,
            reason="Demand",
        )

    told = report(
        [outcome(0.0, 1), outcome(1800.0, 3)],
        period_s=1800.0,
        startup_s=900.0,
        accelerators=1,
        price_usd_per_hour=None,
    )

    # 1 and 3 replicas for half an hour each, and two starts of a quarter.
    assert told.ran.gpu_hours == pytest.approx(2.5)
    assert told.fleetline.gpu_hours == pytest.approx(2.0)
