"""
What the HorizontalPodAutoscaler does with a recommendation: stabilization, then rate limits.

Several peers publish a number and leave the rest to an HPA, so they share this module.
Stabilization moves as little as the recommendations of the window allow: up to the lowest of the
scale-up window, down to the highest of the scale-down window.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal.go
(stabilizeRecommendationWithBehaviors, convertDesiredReplicasWithBehaviorRate).
"""

import math
from dataclasses import dataclass

from fleetline.replay.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaBehavior:
    """`spec.behavior` of autoscaling/v2 and the controller's tolerance; its own defaults."""

    tolerance: float = 0.1
    """Relative deviation that is ignored. 0..1"""
    scale_up_window_s: float = 0.0
    scale_down_window_s: float = 300.0
    scale_up_percent: int = 100
    """Of the replicas at the start of the rate period. [%]"""
    scale_up_pods: int = 4
    rate_period_s: float = 15.0


@dataclass(frozen=True, slots=True)
class HpaState:
    """What the controller remembers."""

    recommendations: tuple[tuple[float, int], ...] = ()
    """(time, count), oldest first."""
    changes: tuple[tuple[float, int], ...] = ()
    """(time, replicas added), oldest first."""


def begin(_: object, __: int) -> HpaState:
    """State of a controller that has just started."""
    return HpaState()


def behave(
    behavior: HpaBehavior, state: HpaState, seen: Observation, recommended: int
) -> tuple[HpaState, int]:
    """Stabilize one recommendation and limit the rate of change."""
    now_s, current = seen.now_s, seen.current_replicas
    longest_s = max(behavior.scale_up_window_s, behavior.scale_down_window_s)
    kept = (*(one for one in state.recommendations if one[0] > now_s - longest_s),)
    kept = (*kept, (now_s, recommended))
    low = min(n for t, n in kept if t > now_s - behavior.scale_up_window_s or t == now_s)
    high = max(n for t, n in kept if t > now_s - behavior.scale_down_window_s or t == now_s)
    stabilized = min(max(current, low), high) if low <= high else recommended
    changes = tuple(one for one in state.changes if one[0] > now_s - behavior.rate_period_s)
    desired = seen.bounded(min(stabilized, _most(behavior, changes, current)))
    if desired != current:
        changes = (*changes, (now_s, desired - current))
    return HpaState(kept, changes), desired


def _most(behavior: HpaBehavior, changes: tuple[tuple[float, int], ...], current: int) -> int:
    """Most replicas that the scale-up policies allow now; the larger of the two binds."""
    start = current - sum(added for _, added in changes if added > 0)
    percent = math.ceil(start * (1 + behavior.scale_up_percent / 100))
    return max(current, percent, start + behavior.scale_up_pods)


def pods_metric(
    seen: Observation, values: tuple[float, ...], target: float, tolerance: float
) -> int:
    """
    Recommendation for an average over pods.

    Pods without a sample count as on target when the average is below it, and as zero when it is
    above; unready ones count as zero when it is above. If that turns the direction round, or no
    pod has a sample, nothing changes.

    Source: replica_calculator.go (GetMetricReplicas, calcPlainMetricReplicas).
    """
    current = seen.current_replicas
    if not values:
        return current
    missing = max(0, seen.ready_replicas - len(values))
    ratio = sum(values) / len(values) / target
    unready = seen.starting_replicas if ratio > 1 else 0
    if not missing and not unready:
        return current if abs(ratio - 1) <= tolerance else math.ceil(ratio * len(values) - 1e-9)
    counted = len(values) + missing + unready
    filled = sum(values) + (missing * target if ratio < 1 else 0.0)
    adjusted = filled / counted / target
    if abs(adjusted - 1) <= tolerance or (ratio < 1) != (adjusted < 1):
        return current
    replicas = math.ceil(adjusted * counted - 1e-9)
    turns_round = (adjusted < 1 and replicas > current) or (adjusted > 1 and replicas < current)
    return current if turns_round else replicas


def average_value(seen: Observation, total: float, target: float, tolerance: float) -> int:
    """
    Recommendation for an External metric with an AverageValue target.

    Source: replica_calculator.go (GetExternalPerPodMetricReplicas).
    """
    ratio = total / (target * max(1, seen.current_replicas))
    if abs(ratio - 1) <= tolerance:
        return seen.current_replicas
    return math.ceil(total / target - 1e-9)
