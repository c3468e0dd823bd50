"""What a turn's observations teach about arrivals, and about what is inside."""

import numpy as np
import pytest

from fleetline.control.learning import Lesson, dispersion_of, learn
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Reading, unknown
from fleetline.policy.forecast import RateHistory
from tests.control.fakes import a_fleet, a_target, seen

PERIOD_S, WINDOW_S = 15.0, 60.0


def sliding(counts: "np.ndarray[tuple[int], np.dtype[np.float64]]", repeat: int = 1) -> RateHistory:
    """Rates over a minute as turns see them, from scrapes every `repeat` turns."""
    history = RateHistory.empty()
    total = np.concatenate([[0.0], np.cumsum(counts)])
    inside = round(WINDOW_S / PERIOD_S / repeat) - 1
    for index in range(round(WINDOW_S / PERIOD_S), counts.size):
        last = index - index % repeat
        first = last - inside * repeat
        rate = (total[last] - total[first]) / ((last - first) * PERIOD_S)
        history = history.add(index * PERIOD_S, float(rate))
    return history


@pytest.mark.parametrize("dispersion", [1.0, 4.0, 12.0])
def test_the_dispersion_of_counts_is_found(dispersion: float) -> None:
    random = np.random.default_rng(3)
    mean = 10.0 * PERIOD_S
    rates = mean if dispersion == 1 else random.gamma(mean / (dispersion - 1), dispersion - 1, 500)

    found = dispersion_of(sliding(random.poisson(rates, 500).astype(float)), WINDOW_S)

    assert found == pytest.approx(dispersion, rel=0.35)


def test_demand_that_changes_from_minute_to_minute_is_no_burst() -> None:
    random = np.random.default_rng(3)
    minutes = 150.0 * np.exp(random.normal(0.0, 0.15, 125))
    found = dispersion_of(sliding(random.poisson(np.repeat(minutes, 4)).astype(float)), WINDOW_S)

    # In minutes: 1 + 600 x 0.15^2 = 14.5.
    assert found < 6.0


def test_scrapes_further_apart_than_turns_do_not_hide_bursts() -> None:
    random = np.random.default_rng(3)
    counts = random.poisson(random.gamma(150.0 / 7.0, 7.0, 500)).astype(float)

    assert dispersion_of(sliding(counts, repeat=2), WINDOW_S) == pytest.approx(8.0, rel=0.4)


def test_before_there_are_counts_a_measured_prior_holds() -> None:
    assert dispersion_of(RateHistory.empty(), WINDOW_S) == 1.4


@pytest.mark.parametrize(
    "part",
    [
        seen(10.0, replicas=1, running_requests=Reading(5.0)),
        seen(10.0, replicas=2, running_requests=Reading(5.0), is_partial=True),
        seen(10.0, replicas=2, running_requests=Reading(5.0), frozen_replicas=1),
        seen(10.0, replicas=2, waiting_requests=unknown("no series")),
    ],
    ids=["one replica reports", "partial answer", "one stands still", "no queue"],
)
def test_what_is_seen_of_a_part_is_not_the_least_that_was_inside(part: Observations) -> None:
    memory, whole = Memory(), seen(10.0, replicas=2, waiting=80.0)

    for turn, observed in enumerate((whole, part, whole)):
        lesson = Lesson(
            fleet=a_fleet(), target=a_target(2), seen=observed, ready=2, now_s=turn * PERIOD_S
        )
        memory = learn(memory, lesson)

    assert min(requests for _, requests in memory.inside) == 130.0
