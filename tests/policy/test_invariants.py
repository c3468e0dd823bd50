"""
Laws of the policy, for any situation:

I1  what is unknown or incomplete never lowers the count (bounds aside);
I2  what is decided lies within the bounds and is an integer;
I3  the count moves no faster than `behavior` allows, whatever was written before;
I4  more demand never gives fewer replicas;
I5  deciding twice gives the same; applying a decision and deciding again asks for no more change
    in the same direction than the policies allow;
I6  nothing is lowered before a full window of fresh, complete samples;
I7  (optimistic writes) and I10 (isolation) are tests of the adapters and of the loop;
I8  a count that others take away is not fought over;
I9  nothing raises, whatever the numbers;
I11 bounds outrank metrics, and paused outranks bounds;
I12 deciding is a pure function of the situation: `now` is an argument.
"""

from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from fleetline.policy import limits
from fleetline.policy.decision import Reason
from fleetline.policy.history import Evidence
from fleetline.policy.rules import decide
from fleetline.policy.situation import Situation
from tests.policy.situations import situations

MORE = st.floats(min_value=0.0, max_value=1e4)


def bounded(replicas: int, situation: Situation) -> int:
    return min(max(replicas, situation.min_replicas), situation.max_replicas)


@given(situations())
def test_what_is_unknown_never_lowers(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    blind = replace(situation, demand=None, evidence=Evidence.UNKNOWN)

    assert decide(blind).desired_replicas >= bounded(situation.current_replicas, situation)


@given(situations())
def test_what_is_incomplete_never_lowers(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    partial = replace(situation, evidence=Evidence.INCOMPLETE)

    assert decide(partial).desired_replicas >= bounded(situation.current_replicas, situation)


@given(situations())
def test_a_replica_that_is_not_understood_never_lowers(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    strange = replace(situation, ceiling_at=None)

    assert decide(strange).desired_replicas >= bounded(situation.current_replicas, situation)


@given(situations())
def test_the_bounds_hold_whatever_the_other_rules_say(situation: Situation) -> None:
    assume(situation.current_replicas > 0)

    desired = decide(situation).desired_replicas

    assert isinstance(desired, int)
    assert situation.min_replicas <= desired <= situation.max_replicas


@given(situations())
def test_no_count_grows_faster_than_the_behavior_allows(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    left = situation.restorable_replicas or 0
    most = max(limits.most_replicas(situation), situation.current_replicas, left)

    assert decide(situation).desired_replicas <= max(most, situation.min_replicas)


@given(situations())
def test_no_count_falls_faster_than_the_behavior_allows(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    least = min(limits.least_replicas(situation), situation.current_replicas)

    assert decide(situation).desired_replicas >= min(least, situation.max_replicas)


@given(situations(), MORE, MORE)
def test_more_demand_never_means_fewer_replicas(
    situation: Situation, more_per_s: float, more_waiting: float
) -> None:
    assume(situation.demand is not None and situation.current_replicas > 0)
    demand = situation.demand
    assert demand is not None
    busier = replace(
        demand,
        arrival_rate_per_s=demand.arrival_rate_per_s + more_per_s,
        expected_rate_per_s=demand.expected_rate_per_s + more_per_s,
        in_flight_requests=demand.in_flight_requests + more_waiting,
        waiting_requests=demand.waiting_requests + more_waiting,
    )

    before = decide(situation).desired_replicas

    assert decide(replace(situation, demand=busier)).desired_replicas >= before


@given(situations())
def test_deciding_twice_gives_the_same(situation: Situation) -> None:
    assert decide(situation) == decide(situation)


@given(situations())
def test_every_step_after_the_first_changes_the_count(situation: Situation) -> None:
    steps = decide(situation).steps

    assert all(after.replicas != before.replicas for before, after in pairwise(steps))


@given(situations())
def test_nothing_is_lowered_before_a_full_window_was_seen(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    window_s = situation.behavior.scale_down.stabilization_window_s
    assume(window_s > 0)
    history = replace(situation.history, complete_since_s=situation.now_s - window_s + 1)

    desired = decide(replace(situation, history=history)).desired_replicas

    assert desired >= bounded(situation.current_replicas, situation)


@given(situations())
def test_what_was_just_given_back_is_not_given_back_at_once_again(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    history = replace(situation.history, restored_s=situation.now_s - 60)
    most = max(limits.most_replicas(situation), situation.current_replicas)

    desired = decide(replace(situation, history=history)).desired_replicas

    assert desired <= max(most, situation.min_replicas)


@given(situations(held=True))
def test_paused_outranks_everything(situation: Situation) -> None:
    decision = decide(situation)

    assert decision.desired_replicas == situation.current_replicas
    assert decision.binding.reason is Reason.PAUSED


@given(situations())
def test_zero_means_off(situation: Situation) -> None:
    decision = decide(replace(situation, current_replicas=0))

    assert decision.desired_replicas == 0
    assert decision.binding.reason is Reason.SCALING_DISABLED


@given(situations())
def test_nothing_is_lowered_during_a_rollout(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    moving = replace(situation, is_rolling_out=True)

    assert decide(moving).desired_replicas >= bounded(situation.current_replicas, situation)


@given(situations())
def test_nothing_is_added_while_pods_have_no_node(situation: Situation) -> None:
    assume(situation.current_replicas > 0)
    health = replace(situation.health, unschedulable=1)

    desired = decide(replace(situation, health=health)).desired_replicas

    assert desired <= max(situation.current_replicas, situation.min_replicas)


@given(situations())
def test_the_decision_reads_aloud(situation: Situation) -> None:
    decision = decide(situation)

    assert str(decision).startswith(f"{decision.current_replicas} -> {decision.desired_replicas} (")
    assert all(step.because and not step.because.endswith(".") for step in decision.steps)
