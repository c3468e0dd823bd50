"""Turns in virtual time: what is seen becomes what is written."""

from dataclasses import replace

import pytest

from fleetline.control.assess import FIRST_TURNS
from fleetline.control.ports import Observations, Reading, unknown
from fleetline.policy.attainment import FIRST
from fleetline.policy.behavior import SCALE_DOWN, Behavior
from fleetline.policy.decision import Reason
from tests.control.fakes import (
    OBJECTIVE,
    PERIOD_S,
    FakeCluster,
    a_fleet,
    a_target,
    pods,
    seen,
    turns,
)


async def test_more_arrivals_than_one_replica_takes_add_replicas() -> None:
    cluster = FakeCluster(a_target(1))

    await turns(a_fleet(), cluster, [seen(40.0)])

    assert cluster.target.replicas > 1


async def test_steady_arrivals_write_once_and_then_never_again() -> None:
    cluster = FakeCluster(a_target(1))

    await turns(a_fleet(), cluster, [seen(40.0, replicas=20)] * 40)

    assert len(cluster.written) <= 2


async def test_known_silence_goes_down_to_the_minimum_after_a_full_window() -> None:
    cluster = FakeCluster(a_target(8))

    taken = await turns(a_fleet(), cluster, [seen(0.0, replicas=8)] * 60)

    assert cluster.target.replicas == 1
    assert next(turn.now_s for turn in taken if turn.wrote) >= FIRST_TURNS * PERIOD_S


@pytest.mark.parametrize(
    "view",
    [
        pytest.param("Prometheus is unreachable", id="no Prometheus"),
        pytest.param(seen(0.0, arrival_rate_per_s=unknown("no series")), id="no arrivals"),
        pytest.param(seen(0.0, replicas=8, is_partial=True), id="a partial answer"),
        pytest.param(seen(0.0, replicas=3), id="3 of 8 replicas report"),
        pytest.param(seen(0.0, replicas=7, frozen_replicas=1), id="one replica stands still"),
        pytest.param(seen(0.0, replicas=8, clock_skew_s=600.0), id="a clock ahead"),
        pytest.param(seen(0.0, replicas=8, clock_skew_s=-600.0), id="a clock behind"),
        pytest.param(seen(0.0, replicas=8, sample_age_s=Reading(300.0)), id="old samples"),
        pytest.param(
            seen(0.0, replicas=8, waiting_requests=unknown("no series")), id="no waiting gauge"
        ),
    ],
)
@pytest.mark.parametrize("window_s", [0.0, 60.0])
async def test_what_is_not_known_never_lowers(view: Observations | str, window_s: float) -> None:
    cluster = FakeCluster(a_target(8))
    at_once = replace(SCALE_DOWN, stabilization_window_s=window_s)

    await turns(a_fleet(behavior=Behavior(scale_down=at_once)), cluster, [view] * 50)

    assert cluster.written == []


@pytest.mark.parametrize("view", [seen(200.0, clock_skew_s=600.0), seen(200.0, frozen_replicas=1)])
async def test_what_is_seen_in_part_still_raises(view: Observations) -> None:
    cluster = FakeCluster(a_target(1))

    await turns(a_fleet(), cluster, [view])

    assert cluster.target.replicas > 1


async def test_pods_that_will_be_ready_in_the_future_have_to_report() -> None:
    ahead = pods(8, age_s=-600.0)
    cluster = FakeCluster(a_target(8, pods=ahead))

    await turns(a_fleet(), cluster, [seen(0.0, replicas=2)] * 60)

    assert cluster.written == []


async def test_one_bad_turn_restarts_the_window_before_a_decrease() -> None:
    cluster = FakeCluster(a_target(8))
    quiet = seen(0.0, replicas=8)

    taken = await turns(a_fleet(), cluster, [*[quiet] * 39, "gone", *[quiet] * 25])

    window_s = SCALE_DOWN.stabilization_window_s
    assert next(turn.now_s for turn in taken if turn.wrote) >= FIRST_TURNS * PERIOD_S + window_s


async def test_an_apply_that_drops_the_count_is_undone_in_the_next_turn() -> None:
    busy, fleet = seen(300.0, replicas=40), a_fleet(max_replicas=60)
    cluster = FakeCluster(a_target(40))
    before = await turns(fleet, cluster, [busy] * 60)
    wanted = cluster.target.replicas
    cluster.target = replace(cluster.target, replicas=1)

    after = await turns(fleet, cluster, [busy], memory=before[-1].memory, start_s=60 * PERIOD_S)

    assert after[-1].decision.desired_replicas >= wanted - 1


async def test_an_apply_that_drops_the_count_is_undone_even_without_metrics() -> None:
    busy, fleet = seen(300.0, replicas=40), a_fleet(max_replicas=60)
    cluster = FakeCluster(a_target(40))
    before = await turns(fleet, cluster, [busy] * 30)
    wanted = cluster.target.replicas
    cluster.target = replace(cluster.target, replicas=1)

    after = await turns(fleet, cluster, ["gone"], memory=before[-1].memory, start_s=30 * PERIOD_S)

    assert after[-1].decision.desired_replicas == wanted
    assert after[-1].decision.binding.reason is Reason.RESTORED


async def test_a_count_taken_away_again_and_again_is_not_fought_over() -> None:
    busy, fleet = seen(300.0, replicas=40), a_fleet(max_replicas=60)
    cluster = FakeCluster(a_target(40))
    before = await turns(fleet, cluster, [busy] * 30)
    cluster.target = replace(cluster.target, replicas=1)
    once = await turns(fleet, cluster, [busy], memory=before[-1].memory, start_s=450.0)
    cluster.target = replace(cluster.target, replicas=1)

    twice = await turns(fleet, cluster, [busy], memory=once[-1].memory, start_s=465.0)

    assert twice[-1].decision.desired_replicas <= 5


async def test_replicas_that_are_starting_are_not_asked_for_twice() -> None:
    cluster = FakeCluster(a_target(2), start_at_once=False)

    taken = await turns(a_fleet(), cluster, [seen(60.0, replicas=2)] * 16)

    assert max(cluster.written) == taken[0].decision.recommended_replicas


async def test_bounds_hold_without_any_metrics() -> None:
    cluster = FakeCluster(a_target(30))

    await turns(a_fleet(), cluster, ["gone"])

    assert cluster.written == [20]


async def test_after_two_hours_without_prometheus_nothing_falls_before_a_full_view() -> None:
    quiet, outage = seen(0.0, replicas=20), ["Prometheus is unreachable"] * 480
    cluster = FakeCluster(a_target(8))
    busy = [seen(150.0, replicas=20)] * 30
    before = await turns(a_fleet(), cluster, [*busy, *outage])
    held = cluster.target.replicas

    after = await turns(
        a_fleet(), cluster, [quiet] * 60, memory=before[-1].memory, start_s=510 * PERIOD_S
    )

    first = next(turn for turn in after if turn.wrote)
    assert held >= 4
    assert first.now_s - 510 * PERIOD_S >= SCALE_DOWN.stabilization_window_s
    assert cluster.target.replicas == 1


async def test_a_clock_that_jumps_an_hour_restarts_the_window() -> None:
    quiet, cluster = seen(0.0, replicas=8), FakeCluster(a_target(8))
    before = await turns(a_fleet(max_replicas=8), cluster, [quiet] * 3)

    after = await turns(a_fleet(), cluster, [quiet], memory=before[-1].memory, start_s=3630.0)

    assert after[-1].decision.desired_replicas == 8


async def test_the_margin_grows_while_a_measured_percentile_is_above_its_target() -> None:
    slow = seen(10.0, latency_percentiles_s={str(OBJECTIVE): Reading(0.08)})
    cluster = FakeCluster(a_target(1))

    taken = await turns(a_fleet(), cluster, [slow] * 40)

    assert taken[-1].memory.margin_factor > 1.05 * FIRST


async def test_what_is_late_while_replicas_are_missing_teaches_half_as_much() -> None:
    late = {str(OBJECTIVE): Reading(0.08)}
    slow, overrun = (seen(rate, latency_percentiles_s=late) for rate in (10.0, 200.0))
    enough, short = FakeCluster(a_target(1)), FakeCluster(a_target(1), start_at_once=False)

    served = await turns(a_fleet(), enough, [slow] * 60)
    missing = await turns(a_fleet(), short, [overrun] * 60)

    assert len(short.written) > 0
    assert FIRST < missing[-1].memory.margin_factor < served[-1].memory.margin_factor


async def test_a_gust_that_is_through_before_a_start_could_help_adds_nothing() -> None:
    calm, gust = seen(10.0, replicas=2), seen(10.0, replicas=2, running_requests=Reading(4000.0))

    passing, staying = FakeCluster(a_target(2)), FakeCluster(a_target(2))
    await turns(a_fleet(), passing, [calm, calm, calm, gust, calm, calm])
    await turns(a_fleet(), staying, [calm, calm, calm, *[gust] * 8])

    assert passing.written == []
    assert staying.target.replicas > 2


async def test_an_unknown_gauge_does_not_hide_what_is_inside() -> None:
    full = seen(10.0, replicas=2, running_requests=Reading(4000.0))
    blind = seen(10.0, replicas=2, running_requests=unknown("no series"))
    cluster = FakeCluster(a_target(2))

    await turns(a_fleet(), cluster, [full, blind, full])

    assert cluster.target.replicas > 2
