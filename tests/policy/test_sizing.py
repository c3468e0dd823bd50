"""The smallest fleet that carries a rate: enough, and one fewer would not be."""

from hypothesis import given
from hypothesis import strategies as st

from fleetline.policy.sizing import MOST_REPLICAS, replicas_for_rate
from tests.policy.situations import ceiling_of

RATES = st.floats(min_value=1e-3, max_value=1e4)


@given(RATES, st.floats(min_value=0.1, max_value=50), st.floats(min_value=1, max_value=2))
def test_the_fleet_is_enough_and_one_fewer_is_not(
    rate: float, alone: float, pooling: float
) -> None:
    ceiling_at = ceiling_of(alone, pooling)

    needed = replicas_for_rate(rate, ceiling_at)

    assert needed * ceiling_at(needed).rate_per_s >= rate * (1 - 1e-6)
    assert needed == 1 or (needed - 1) * ceiling_at(needed - 1).rate_per_s < rate


def test_no_arrivals_need_no_replicas() -> None:
    assert replicas_for_rate(0.0, ceiling_of(1.0, 1.0)) == 0


def test_a_ceiling_of_zero_is_no_division() -> None:
    assert replicas_for_rate(1.0, ceiling_of(0.0, 1.0)) == MOST_REPLICAS


def test_pooling_saves_replicas() -> None:
    # 100 req/s at 2.9 alone: 35 without pooling; pooled ceilings reach nearly 5.8.
    assert replicas_for_rate(100.0, ceiling_of(2.9, 1.0)) == 35
    assert replicas_for_rate(100.0, ceiling_of(2.9, 2.0)) < 22
