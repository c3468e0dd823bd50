"""What to be ready for: the coming maximum, as a quantile of what maxima were before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.policy.forecast import MEMORY_S, RateHistory, expect_maximum

PERIOD_S = 15.0


def history_of(rates: list[float]) -> RateHistory:
    history = RateHistory.empty()
    for index, rate in enumerate(rates):
        history = history.add(index * PERIOD_S, rate)
    return history


def test_a_steady_rate_is_expected_to_stay() -> None:
    forecast = expect_maximum(history_of([10.0] * 480), 300.0)

    assert 10.0 <= forecast.expected_rate_per_s < 10.5


def test_before_there_is_history_a_longer_start_asks_for_more() -> None:
    first = history_of([10.0])

    short = expect_maximum(first, 30.0).expected_rate_per_s
    long = expect_maximum(first, 600.0).expected_rate_per_s

    assert 11.0 < short < long < 20.0


def test_a_rate_that_doubles_now_and_then_is_prepared_for() -> None:
    pattern = ([10.0] * 20 + [20.0] * 4) * 20

    forecast = expect_maximum(history_of(pattern), 300.0)

    assert forecast.expected_rate_per_s > 18.0


def test_what_is_expected_is_exceeded_about_as_often_as_the_quantile_says() -> None:
    generator = np.random.default_rng(7)
    rates = list(50.0 + 10.0 * np.sin(np.arange(1200) / 40) + generator.normal(0, 2, 1200))
    ahead = 20
    exceeded = [
        max(rates[index : index + ahead + 1])
        > expect_maximum(
            history_of(rates[max(0, index - 480) : index + 1]), 300.0
        ).expected_rate_per_s
        for index in range(500, 1150, 5)
    ]

    assert 0.0 <= float(np.mean(exceeded)) < 0.2


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=60))
def test_the_expected_maximum_is_never_below_the_rate_now(rates: list[float]) -> None:
    forecast = expect_maximum(history_of(rates), 120.0)

    assert forecast.expected_rate_per_s >= rates[-1] - 1e-6 * max(1.0, rates[-1])
    assert np.isfinite(forecast.expected_rate_per_s)


@given(st.lists(st.floats(min_value=0, max_value=1e3), min_size=1, max_size=40))
def test_twice_the_traffic_is_twice_the_forecast(rates: list[float]) -> None:
    # The floor of one request a minute is not scaled: compare well above it.
    lifted = [rate + 1000.0 for rate in rates]

    once = expect_maximum(history_of(lifted), 120.0).expected_rate_per_s
    twice = expect_maximum(history_of([2 * rate for rate in lifted]), 120.0).expected_rate_per_s

    assert twice == pytest.approx(2 * once, rel=1e-3)


def test_the_history_forgets_after_two_hours() -> None:
    history = history_of([1.0] * 1000)

    assert history.times_s[-1] - history.times_s[0] <= MEMORY_S


def test_long_stays_average_over_short_bursts() -> None:
    bursts = ([10.0] * 3 + [30.0]) * 100

    sharp = expect_maximum(history_of(bursts), 60.0).expected_rate_per_s
    smooth = expect_maximum(history_of(bursts), 60.0, smoothing_s=240.0).expected_rate_per_s

    assert smooth < sharp
