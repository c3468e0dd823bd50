"""Rules of how far a count may move now: the HPA's `behavior` over its periods, and the bounds."""

import math

from fleetline.policy.behavior import PolicyType, ScalingPolicy, SelectPolicy
from fleetline.policy.decision import Reason, Step
from fleetline.policy.situation import Situation


def limit_scale_up(replicas: int, situation: Situation) -> Step | None:
    """Add no faster than the policies of behavior.scaleUp, but give back what was taken."""
    current = situation.current_replicas
    most = most_replicas(situation)
    left = situation.restorable_replicas
    if left is not None and not situation.was_restored_lately:
        most = max(most, left)
    allowed = max(current, most)
    if replicas <= allowed:
        return None
    return Step(Reason.SCALE_UP_LIMIT, allowed, f"behavior.scaleUp allows {allowed} now")


def limit_scale_down(replicas: int, situation: Situation) -> Step | None:
    """Remove no faster than the policies of behavior.scaleDown."""
    allowed = min(situation.current_replicas, least_replicas(situation))
    if replicas >= allowed:
        return None
    return Step(Reason.SCALE_DOWN_LIMIT, allowed, f"behavior.scaleDown allows {allowed} now")


def stay_within_bounds(replicas: int, situation: Situation) -> Step | None:
    """Keep to the owner's bounds, whatever the other rules say."""
    if replicas > situation.max_replicas:
        return Step(
            Reason.TOO_MANY_REPLICAS,
            situation.max_replicas,
            f"maxReplicas is {situation.max_replicas}",
        )
    if replicas < situation.min_replicas:
        return Step(
            Reason.TOO_FEW_REPLICAS,
            situation.min_replicas,
            f"minReplicas is {situation.min_replicas}",
        )
    return None


def most_replicas(situation: Situation) -> int:
    """Largest count that `behavior.scaleUp` allows now."""
    rules = situation.behavior.scale_up
    if rules.select_policy is SelectPolicy.DISABLED or not rules.policies:
        return situation.current_replicas
    limits = [_most(policy, situation) for policy in rules.policies]
    return max(limits) if rules.select_policy is SelectPolicy.MAX else min(limits)


def least_replicas(situation: Situation) -> int:
    """Smallest count that `behavior.scaleDown` allows now."""
    rules = situation.behavior.scale_down
    if rules.select_policy is SelectPolicy.DISABLED or not rules.policies:
        return situation.current_replicas
    limits = [_least(policy, situation) for policy in rules.policies]
    return min(limits) if rules.select_policy is SelectPolicy.MAX else max(limits)


def _most(policy: ScalingPolicy, situation: Situation) -> int:
    """Count at the start of the period, plus what one period may add."""
    since_s = situation.now_s - policy.period_s
    history, current = situation.history, situation.current_replicas
    if history.foreign_event_s is not None and history.foreign_event_s > since_s:
        return current
    start = max(0, current - history.added_since(since_s) + history.removed_since(since_s))
    if policy.type is PolicyType.PODS:
        return start + policy.value
    return math.ceil(start * (1 + policy.value / 100))


def _least(policy: ScalingPolicy, situation: Situation) -> int:
    """Count at the start of the period, less what one period may remove."""
    since_s = situation.now_s - policy.period_s
    history, current = situation.history, situation.current_replicas
    if history.foreign_event_s is not None and history.foreign_event_s > since_s:
        return current
    start = current + history.removed_since(since_s) - history.added_since(since_s)
    if policy.type is PolicyType.PODS:
        return start - policy.value
    return math.floor(start * (1 - policy.value / 100))
