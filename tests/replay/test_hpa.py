"""
The HPA, against its published formula:

1. desired = ceil(n x mean / target), within the tolerance nothing;
2. twice the pods at the same load each want twice the count;
3. down only to the highest recommendation of 300 s, up by the larger of double and four.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.replay.baselines.hpa import HpaParameters, Signal, step
from fleetline.replay.baselines.hpa_behavior import (
    HpaBehavior,
    HpaState,
    average_value,
    behave,
    pods_metric,
)
from tests.replay.looks import look, sample


@pytest.mark.parametrize(
    ("in_flight", "target", "expected"),
    [
        pytest.param((30, 50), 20.0, 4, id="mean 40 over 20 doubles two pods"),
        pytest.param((10, 10, 10, 10), 20.0, 2, id="half the target halves"),
        pytest.param((21, 22), 20.0, 2, id="7.5 percent above is tolerated"),
        pytest.param((23, 22), 20.0, 3, id="12.5 percent above is not: ceil(2.25)"),
        pytest.param((0, 0), 20.0, 0, id="nothing wants nothing"),
    ],
)
def test_pods_metric_follows_the_ratio(in_flight, target, expected):
    seen = look(sample(n) for n in in_flight)

    assert pods_metric(seen, tuple(map(float, in_flight)), target, 0.1) == expected


def test_starting_pods_count_as_idle_on_the_way_up():
    # two ready at 40 over 20, two starting: (40 + 40) / 4 / 20 = 1, so nothing more is needed
    seen = look([sample(40), sample(40)], current=4, ready=2)

    assert pods_metric(seen, (40.0, 40.0), 20.0, 0.1) == 4


def test_unscraped_pods_count_as_on_target_on_the_way_down():
    # two at 5, two without series counted as 20: (10 + 40) / 4 / 20 = 0.625, ceil(2.5) = 3
    seen = look([sample(5), sample(5)], current=4, ready=4)

    assert pods_metric(seen, (5.0, 5.0), 20.0, 0.1) == 3


def test_without_any_sample_the_count_stays():
    parameters = HpaParameters(signal=Signal.IN_FLIGHT, target=10.0)

    assert step(parameters, HpaState(), look([], current=7))[1] == 7


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=8),
    st.floats(1.0, 100.0),
)
def test_twice_the_pods_at_the_same_load_want_twice_as_many(loads, target):
    once = tuple(map(float, loads))
    mean = sum(once) / len(once) / target
    single = pods_metric(look(sample(n) for n in loads), once, target, 0.1)
    double = pods_metric(look(sample(n) for n in loads * 2), once * 2, target, 0.1)

    # rounding up once for both halves may save one
    assert double in {2 * single, 2 * single - 1} or abs(mean - 1) <= 0.1


@pytest.mark.parametrize(
    ("total", "current", "expected"),
    [
        pytest.param(12.0, 2, 3, id="12 waiting at 5 each want 3"),
        pytest.param(10.5, 2, 2, id="5 percent above is tolerated"),
        pytest.param(0.0, 4, 0, id="an empty queue wants none"),
    ],
)
def test_average_value_divides_the_sum(total, current, expected):
    seen = look([sample()] * current)

    assert average_value(seen, total, 5.0, 0.1) == expected


def test_down_waits_until_the_window_has_forgotten_the_high():
    behavior, state, current = HpaBehavior(), HpaState(), 8
    counts = []
    for tick in range(22):
        seen = look([sample()] * current, now_s=15.0 * tick)
        state, current = behave(behavior, state, seen, 8 if tick == 0 else 2)
        counts.append(current)

    # the high of t = 0 leaves the window after 300 s, at tick 20
    assert counts[19] == 8
    assert counts[20] == 2


def test_up_is_limited_to_the_larger_of_double_and_four():
    behavior = HpaBehavior()

    assert behave(behavior, HpaState(), look([sample()]), 50)[1] == 5
    assert behave(behavior, HpaState(), look([sample()] * 10), 50)[1] == 20


def test_what_was_added_in_the_period_counts_against_the_limit():
    state, first = behave(HpaBehavior(), HpaState(), look([sample()] * 10), 15)
    _, second = behave(HpaBehavior(), state, look([sample()] * 15, now_s=5.0), 50)

    # 10 at the start of the period may become 20
    assert (first, second) == (15, 20)
