"""Start-up times and the margin: measured, bounded, slow to forget."""

from dataclasses import replace

import pytest

from fleetline.policy.attainment import HIGHEST, LOWEST, learn_margin_factor
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


def test_one_late_minute_in_two_hundred_balances() -> None:
    margin = learn_margin_factor(1.1, missed=1, elapsed_s=60)
    for _ in range(199):
        margin = learn_margin_factor(margin, missed=0, elapsed_s=60)

    assert margin == pytest.approx(1.1, rel=0.002)


def test_the_margin_stays_within_bounds() -> None:
    high = low = 1.0
    for _ in range(2000):
        high = learn_margin_factor(high, missed=2, elapsed_s=60)
        low = learn_margin_factor(low, missed=0, elapsed_s=60)

    assert (high, low) == (HIGHEST, LOWEST)
