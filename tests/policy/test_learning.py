"""Start-up times and the margin: measured, bounded, and forgotten in time."""

from dataclasses import replace

import pytest

from fleetline.policy.attainment import HIGHEST, REST, Attainment, learn_margin_factor
from fleetline.policy.startup import PRIOR_S, StartupTimes


def test_before_any_start_the_prior_holds() -> None:
    assert StartupTimes().likely_s == PRIOR_S


def test_measured_starts_take_over() -> None:
    starts = {f"pod-{index}": 40.0 for index in range(20)}

    startup = StartupTimes().observe(starts, frozenset(starts))

    assert 40.0 <= startup.likely_s < 50.0


def test_a_pod_counts_once() -> None:
    starts = {"pod-1": 40.0}
    startup = StartupTimes().observe(starts, frozenset(starts))

    assert startup.observe(starts, frozenset(starts)) is startup


def test_the_ninth_of_ten_starts_is_the_horizon() -> None:
    starts = {f"pod-{index}": 30.0 for index in range(16)} | {
        f"slow-{index}": 600.0 for index in range(16)
    }

    startup = StartupTimes().observe(starts, frozenset(starts))

    assert startup.likely_s > 500.0
    assert startup.typical_s < 100.0


def test_the_deadline_is_a_multiple_of_the_longest_start() -> None:
    startup = replace(StartupTimes(), seconds=(200.0,))

    assert startup.deadline_s == 600.0


def test_a_late_minute_raises_the_margin() -> None:
    assert learn_margin_factor(1.1, attainment=Attainment.LATE, elapsed_s=60) == pytest.approx(
        1.122
    )


def test_what_is_late_while_replicas_are_missing_counts_half() -> None:
    raised = learn_margin_factor(1.1, attainment=Attainment.LATE_WHILE_SHORT, elapsed_s=60)

    assert raised == pytest.approx(1.111)


def test_the_margin_halves_its_distance_from_its_rest_in_four_hours() -> None:
    margin, low = 1.4, 0.9
    for _ in range(4 * 60):
        margin = learn_margin_factor(margin, attainment=Attainment.HELD, elapsed_s=60)
        low = learn_margin_factor(low, attainment=Attainment.HELD, elapsed_s=60)

    assert margin == pytest.approx((1.4 + REST) / 2, rel=1e-6)
    assert low == pytest.approx((0.9 + REST) / 2, rel=1e-6)


def test_a_long_pause_counts_as_two_minutes() -> None:
    paused = learn_margin_factor(1.2, attainment=Attainment.LATE, elapsed_s=3600)

    assert paused == pytest.approx(1.2 * 1.04)


def test_the_margin_stays_within_bounds() -> None:
    margin = 1.0
    for _ in range(2000):
        margin = learn_margin_factor(margin, attainment=Attainment.LATE, elapsed_s=60)

    assert margin == HIGHEST
