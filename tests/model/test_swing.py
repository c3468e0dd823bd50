"""
How the number in the batch swings, and the distributions that follow. Laws:

1. where steps level off (experts) the mean over a swing lies below the middle, and what varies is
skewed to the left; 2. a prompt that holds others back makes the batch swing more; 3. replicas
behind one router share the swing, and wait less for prefill; 4. a mirrored distribution keeps its
moments; 5. tails that are taken for certain are.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.model.distribution import Latency, excess_of
from fleetline.model.first_token import prefill_wait
from fleetline.model.lanes import Lanes
from fleetline.model.loop import closed_loop, open_loop
from fleetline.model.swing import variance_ratio
from fleetline.model.workload import TokenLengths, Workload
from tests.model.deployments import CHAT, replica

EXPERTS = replica("qwen3-30b-a3b", "H200")
DENSE = replica()
FEW = np.array([[8.0]])


def test_experts_that_are_touched_already_skew_the_step_to_the_left() -> None:
    short = Workload(lengths=TokenLengths.evenly(50.0, 200.0))

    level_off = open_loop(Lanes.of([(EXPERTS, short, 1)]), FEW)
    straight = open_loop(Lanes.of([(DENSE, short, 1)]), FEW)

    assert float(level_off.level_skewness[0, 0]) < -0.1
    assert float(straight.level_skewness[0, 0]) > float(level_off.level_skewness[0, 0])


def test_a_swing_where_steps_level_off_lies_below_the_middle() -> None:
    short = Workload(lengths=TokenLengths.evenly(50.0, 200.0))
    alone, together = (
        open_loop(Lanes.of([(EXPERTS, short, replicas)]), FEW) for replicas in (1, 64)
    )

    # A request of a pool meets one fewer, and yet its steps are hardly quicker: no swing.
    assert float(alone.step_s[0, 0]) < 1.06 * float(together.step_s[0, 0])
    assert float(alone.spread_requests2[0, 0]) > 5 * float(together.spread_requests2[0, 0])


def test_each_deployment_of_a_stack_has_its_own_share_of_steps_with_prefill() -> None:
    reading = Workload(lengths=TokenLengths.evenly(3000.0, 20.0))
    asked = [(DENSE, CHAT, 1), (DENSE, reading, 1)]

    together = closed_loop(Lanes.of(asked), np.array([[8.0], [8.0]])).mixed_share
    alone = [closed_loop(Lanes.of([one]), FEW).mixed_share for one in asked]

    assert together == pytest.approx(np.concatenate(alone))


@given(st.floats(0.0, 5.0))
@settings(max_examples=20, deadline=None)
def test_prompts_that_hold_others_back_make_the_batch_swing_more(held: float) -> None:
    lanes = Lanes.of([(DENSE, CHAT, 1)])
    stay_s = np.array([[10.0]])

    calm = variance_ratio(lanes, stay_s)
    pushed = variance_ratio(lanes, stay_s, np.array([[held]]))

    assert float(pushed[0, 0]) >= float(calm[0, 0]) - 1e-9


def test_replicas_that_share_a_router_wait_less_for_prefill_at_the_same_load() -> None:
    reading = Workload(lengths=TokenLengths.evenly(3000.0, 60.0, spread_share=0.9))
    waits = []
    for replicas in (1, 4, 16, 64):
        lanes = Lanes.of([(DENSE, reading, replicas)])
        waits.append(float(prefill_wait(lanes, open_loop(lanes, FEW)).mean_s[0, 0]))

    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < 0.7 * waits[0]


def latency(mean_s: float, deviation_s: float, skewness: float) -> Latency:
    one = np.ones((1, 1, 1))
    variance = deviation_s**2 * one
    excess = excess_of(variance, skewness * deviation_s**3 * one)
    return Latency(shift_s=mean_s - excess, excess_s=excess, variance_s2=variance, weights=one)


@given(st.floats(0.01, 2.0), st.floats(0.05, 0.4), st.floats(0.15, 1.5))
@settings(max_examples=30, deadline=None)
def test_a_mirrored_distribution_is_the_mirror(
    mean_s: float, share: float, skewness: float
) -> None:
    deviation_s = share * mean_s
    right, left = (latency(mean_s, deviation_s, sign * skewness) for sign in (1.0, -1.0))

    for distance in (-2.0, -0.5, 0.0, 1.0, 2.5):
        above = float(right.attainment(mean_s + distance * deviation_s)[0, 0])
        below = float(left.attainment(mean_s - distance * deviation_s)[0, 0])
        assert above == pytest.approx(1.0 - below, abs=1e-9)
    assert float(left.percentile_s(0.99)[0, 0]) < float(right.percentile_s(0.99)[0, 0])
    assert float(left.third_s3()[0, 0, 0]) == pytest.approx(-skewness * deviation_s**3, rel=1e-6)


@pytest.mark.parametrize("most_s", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("deviation_s", [0.02, 0.05])
def test_a_latency_below_a_bound_keeps_its_mean(most_s: float, deviation_s: float) -> None:
    one = np.ones((1, 1, 1))
    found = Latency(
        shift_s=0.1 * one,
        excess_s=0.1 * one,
        variance_s2=deviation_s**2 * one,
        weights=one,
        most_s=most_s * one,
    )

    targets_s = np.linspace(0.0, most_s, 4001)
    missed = [1.0 - float(found.attainment(target_s)[0, 0]) for target_s in targets_s]

    assert np.trapezoid(missed, targets_s) == pytest.approx(0.2, rel=1e-3)
    assert missed[-1] == pytest.approx(0.0, abs=1e-9)
