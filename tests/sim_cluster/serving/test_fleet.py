"""Fleets in virtual time: replicas start, serve and drain, and routers choose."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.errors import ModelError
from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation, Router, Victims
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.lives import Ending
from sim_cluster.serving.startup import StartupTime

STEP_TIME = StepTime(
    fixed_s=2e-3,
    weights_read_s=5e-3,
    kv_read_s_per_token=5e-8,
    token_compute_s=2e-5,
    sequence_s=3e-5,
    prefill_token_s=3e-5,
)
LIMITS = EngineLimits(max_sequences=32, step_token_budget=512, kv_capacity_tokens=100_000.0)


def steady(seconds: float, gap_s: float = 0.1, output: int = 100) -> Arrivals:
    times = np.arange(0.0, seconds, gap_s)
    return Arrivals.of(times, 100, output)


def fleet(arrivals: Arrivals, **options) -> FleetSimulation:
    return FleetSimulation(arrivals, STEP_TIME, LIMITS, **options)


def test_a_new_replica_serves_when_its_start_up_time_is_over() -> None:
    running = fleet(steady(60), startup=StartupTime.fixed(20.0))
    running.advance(10.0)

    running.scale(2)
    running.advance(29.9)
    before = running.snapshot()
    running.advance(31.0)
    after = running.snapshot()

    assert (before.ready_replicas, before.starting_replicas) == (1, 1)
    assert (after.ready_replicas, after.starting_replicas) == (2, 0)
    assert running.lives[1].ready_s == 30.0
    assert after.routed[1] > 0


def test_a_drained_replica_finishes_what_it_has_and_takes_no_more() -> None:
    running = fleet(steady(60), initial_replicas=2)
    running.advance(20.05)

    running.scale(1)
    draining = running.snapshot()
    running.advance(math.inf)

    life = running.lives[1]
    mine = running.results().replica == 1
    assert draining.draining_replicas == 1
    assert life.ending is Ending.DRAINED
    assert 20.05 < life.ended_s < 22.0
    assert not np.isnan(running.results().e2e_s[mine]).any()
    assert running.results().t_s[mine].max() <= 20.05


def test_the_newest_replica_goes_first_unless_the_idlest_is_asked_for() -> None:
    arrivals = Arrivals.of([0.0, 0.001, 0.002], 100, [10, 3000, 3000])
    newest = fleet(arrivals, initial_replicas=3, router=Router.ROUND_ROBIN)
    idlest = fleet(arrivals, initial_replicas=3, router=Router.ROUND_ROBIN, victims=Victims.IDLEST)

    for one in (newest, idlest):
        one.advance(5.0)
        one.scale(2)

    assert math.isfinite(newest.lives[2].drain_began_s)
    assert idlest.lives[0].ended_s == 5.0


def test_what_has_not_started_is_removed_before_what_serves() -> None:
    running = fleet(steady(60), startup=StartupTime.fixed(20.0), initial_replicas=2)
    running.scale(3)
    running.advance(5.0)

    running.scale(2)

    assert running.lives[2].ending is Ending.NEVER_READY
    assert running.lives[2].held_s(60.0) == 5.0
    assert running.snapshot().ready_replicas == 2


def test_requests_wait_at_the_router_while_no_replica_is_ready() -> None:
    running = fleet(steady(10), startup=StartupTime.fixed(5.0), initial_replicas=0)
    running.scale(1)

    running.advance(4.95)
    held = running.snapshot().held_requests
    running.advance(math.inf)

    assert held == 50
    assert running.results().ttft_s[0] == pytest.approx(5.0, abs=0.2)
    assert not np.isnan(running.results().e2e_s).any()


def test_more_replicas_than_slots_make_the_arrays_grow() -> None:
    running = fleet(steady(30, gap_s=0.01, output=10), initial_replicas=1)
    running.scale(100)

    running.advance(math.inf)

    assert len(np.unique(running.results().replica)) == 100
    assert not np.isnan(running.results().e2e_s).any()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(0, 1000))
@settings(max_examples=60)
def test_whatever_is_asked_for_no_request_is_lost(asked: list[int], seed: int) -> None:
    arrivals = steady(60, gap_s=0.2)
    running = fleet(
        arrivals, startup=StartupTime.spread(8.0, 3.0), router=Router.POWER_OF_TWO, seed=seed
    )
    for turn, replicas in enumerate(asked):
        running.advance(5.0 * (turn + 1))
        running.scale(replicas)
    running.scale(1)

    running.advance(math.inf)

    seen = running.results()
    assert running.is_done
    assert not np.isnan(seen.e2e_s).any()
    assert (seen.e2e_s >= seen.ttft_s).all()
    assert (seen.ttft_s > seen.waiting_s).all()
    assert all(life.ended_s >= life.requested_s for life in running.lives if life.ending)


def test_the_least_loaded_router_keeps_the_queue_shorter_than_taking_turns() -> None:
    random = np.random.default_rng(1)
    count = 20_000
    outputs = np.where(random.random(count) < 0.1, 1500, 30)
    arrivals = Arrivals.of(np.cumsum(random.exponential(0.02, count)), 200, outputs)
    p95_s = {}
    for router in Router:
        running = fleet(arrivals, initial_replicas=4, router=router)
        running.advance(math.inf)
        p95_s[router] = float(np.percentile(running.results().e2e_s[outputs == 30], 95))

    assert p95_s[Router.LEAST_LOADED] <= p95_s[Router.POWER_OF_TWO] <= p95_s[Router.ROUND_ROBIN]


def test_the_same_seed_gives_the_same_result_on_any_machine() -> None:
    # arrivals from integers alone, so that no random generator's rounding is in it
    number = np.arange(20_000, dtype=np.int64)
    mixed = (number * 2_654_435_761) % 2**32
    arrivals = Arrivals.of(number / 64.0, 1 + mixed % 1000, 1 + (mixed >> 12) % 300)
    running = fleet(
        arrivals,
        initial_replicas=3,
        startup=StartupTime.measured([10.0, 20.0, 60.0]),
        router=Router.POWER_OF_TWO,
        seed=42,
    )
    for turn in range(20):
        running.advance(15.0 * (turn + 1))
        running.scale(2 + turn % 4)
    running.advance(math.inf)

    kept = np.round(running.results().e2e_s * 1e9).astype(np.int64)

    assert hashlib.sha256(kept.tobytes()).hexdigest()[:16] == "28ccc174cd5507b0"


def test_the_clock_does_not_run_backwards() -> None:
    running = fleet(steady(10))
    running.advance(5.0)

    with pytest.raises(ModelError, match=r"to_s must be >= the clock \(5 s\), got 4"):
        running.advance(4.0)
