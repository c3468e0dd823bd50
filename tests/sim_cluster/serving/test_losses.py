"""What goes wrong in a fleet, and what is replaced: crashes, lost nodes, no place, rollouts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation, Inventory, Loss, Surge
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


def test_a_crash_restarts_in_place_and_its_requests_are_sent_again() -> None:
    running = fleet(steady(60), startup=StartupTime.fixed(20.0), initial_replicas=2)
    running.advance(20.05)

    running.crash(0)
    running.advance(math.inf)

    assert running.lives[0].restarts == 1
    assert running.lives[0].ready_s == pytest.approx(40.05)
    assert math.isnan(running.lives[0].ended_s)
    assert not np.isnan(running.results().e2e_s).any()


def test_a_crash_without_retries_leaves_its_requests_unfinished() -> None:
    running = fleet(steady(60), initial_replicas=2, loss=Loss.FAILED)
    running.advance(20.05)
    had = int(running.snapshot().in_flight[0])

    running.crash(0)
    running.advance(math.inf)

    assert had > 0
    assert np.isnan(running.results().e2e_s).sum() == had


def test_a_lost_node_takes_its_replicas_until_the_control_plane_replaces_them() -> None:
    running = fleet(
        steady(600, gap_s=1.0),
        startup=StartupTime.fixed(30.0),
        initial_replicas=4,
        inventory=Inventory(nodes=3, replicas_per_node=2),
    )
    running.advance(100.0)

    running.lose_node(0, replacement_delay_s=50.0)
    at_once = running.snapshot()
    running.advance(200.0)
    later = running.snapshot()

    assert at_once.ready_replicas == 2
    assert later.ready_replicas == 4
    assert [life.ending for life in running.lives[:2]] == [Ending.NODE_LOST] * 2
    assert running.lives[4].requested_s == 150.0
    assert running.lives[4].node == 2


def test_replicas_beyond_the_inventory_stay_pending_and_cost_nothing() -> None:
    running = fleet(steady(60), initial_replicas=1, inventory=Inventory(nodes=2))
    running.scale(4)
    running.advance(50.0)

    seen = running.snapshot()

    assert (seen.ready_replicas, seen.pending_replicas) == (2, 2)
    assert sum(life.held_s(50.0) for life in running.lives) == 100.0


def test_a_place_that_becomes_free_goes_to_who_waits_for_it() -> None:
    running = fleet(steady(60), initial_replicas=2, inventory=Inventory(nodes=2))
    running.scale(3)
    running.lose_node(0, replacement_delay_s=10.0)
    running.advance(5.0)
    running.restore_node(0)

    running.advance(30.0)

    assert running.snapshot().ready_replicas == 2
    assert running.snapshot().pending_replicas == 1


@pytest.mark.parametrize(
    ("surge", "most", "least"),
    [
        pytest.param(Surge(max_surge=1), 5, 4, id="one more"),
        pytest.param(Surge(max_surge=0, max_unavailable=1), 4, 3, id="one less"),
        pytest.param(Surge(max_surge=2, max_unavailable=1), 6, 3, id="both"),
    ],
)
def test_a_rolling_update_replaces_all_within_its_limits(
    surge: Surge, most: int, least: int
) -> None:
    running = fleet(steady(300), startup=StartupTime.fixed(10.0), initial_replicas=4, surge=surge)
    running.advance(10.0)

    running.roll_out()
    counts = []
    while running.now_s < 290:
        running.advance(running.now_s + 1.0)
        seen = running.snapshot()
        counts.append((seen.ready_replicas, seen.ready_replicas + seen.starting_replicas))

    assert min(ready for ready, _ in counts) >= least
    assert max(total for _, total in counts) <= most
    alive = [life for life in running.lives if life.is_alive]
    assert [life.revision for life in alive] == [1] * 4


@given(st.lists(st.tuples(st.floats(0.1, 6.0), st.integers(0, 2)), max_size=12))
@settings(max_examples=60)
def test_whatever_crashes_every_request_is_answered_and_every_block_is_free(
    crashes: list[tuple[float, int]],
) -> None:
    random = np.random.default_rng(4)
    tight = EngineLimits(max_sequences=16, step_token_budget=128, kv_capacity_tokens=3000.0)
    arrivals = Arrivals.of(
        np.cumsum(random.exponential(0.05, 400)),
        random.integers(1, 600, 400),
        random.integers(1, 200, 400),
    )
    running = FleetSimulation(
        arrivals, STEP_TIME, tight, startup=StartupTime.fixed(3.0), initial_replicas=3
    )
    for wait_s, number in crashes:
        running.advance(running.now_s + wait_s)
        if running.lives[number].slot is not None:
            running.crash(number)

    running.advance(math.inf)

    seen = running.snapshot()
    assert not np.isnan(running.results().e2e_s).any()
    assert seen.kv_used_tokens.tolist() == [0, 0, 0]
    assert seen.in_flight.tolist() == [0, 0, 0]
    assert running.is_done
