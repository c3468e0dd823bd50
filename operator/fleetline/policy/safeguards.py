"""Rules that say what must not be done on thin evidence, during a change, or without capacity."""

from math import ceil
from typing import Final

from fleetline.policy.decision import Reason, Step
from fleetline.policy.history import Evidence
from fleetline.policy.situation import Situation
from fleetline.policy.sizing import replicas_for_rate

BREAKER_SHARE: Final = 0.45
BREAKER_REPLICAS: Final = 3
"""More than 45 %, and more than 3, not ready at once: cluster-autoscaler's rule for nodes."""

TOLERANCE: Final = 0.03
"""Relative change of demand that must fit before a replica is removed: at the edge between two
counts noise would flip them."""

CRASHING_SHARE: Final = 0.1
"""Above this share of crash-looping replicas more copies are not the answer."""


def keep_near_edge(replicas: int, situation: Situation) -> Step | None:
    """Remove a replica only if a little more demand would not ask for it back."""
    demand, ceiling_at, current = situation.demand, situation.ceiling_at, situation.current_replicas
    if demand is None or ceiling_at is None or replicas >= current:
        return None
    rate_per_s = demand.expected_rate_per_s * demand.margin_factor * (1 + TOLERANCE)
    kept = min(current, replicas_for_rate(rate_per_s, ceiling_at))
    if kept <= replicas:
        return None
    return Step(
        Reason.WITHIN_TOLERANCE, kept, f"{TOLERANCE:.0%} more demand would need {kept} replicas"
    )


def relieve_latency(replicas: int, situation: Situation) -> Step | None:
    """Without a model, add one tenth while a measured percentile is above its target."""
    if not situation.latency_above_objective or situation.ceiling_at is not None:
        return None
    if situation.health.starting > 0:
        return None
    more = situation.current_replicas + max(1, ceil(situation.current_replicas / 10))
    if more <= replicas:
        return None
    return Step(Reason.LATENCY_ABOVE_OBJECTIVE, more, situation.latency_above_objective)


def restore_taken(replicas: int, situation: Situation) -> Step | None:
    """Give back at once what an apply of an old manifest took away."""
    left = situation.restorable_replicas
    if left is None or situation.was_restored_lately:
        return None
    known = situation.demand is not None and situation.ceiling_at is not None
    if known or left <= replicas:
        return None
    return Step(
        Reason.RESTORED,
        left,
        f"the count was set from {left} to {situation.current_replicas} from outside",
    )


def replace_failed(replicas: int, situation: Situation) -> Step | None:
    """Count out replicas that should have been ready long ago, unless many of them fail."""
    failed = situation.health.failed
    if failed == 0 or _breaker_is_open(situation) or situation.demand is None:
        return None
    return Step(
        Reason.REPLICAS_UNHEALTHY,
        replicas + failed,
        f"{failed} replicas are not ready although a start does not take that long",
    )


def stabilize_up(replicas: int, situation: Situation) -> Step | None:
    """Go up only to the lowest recommendation of the window."""
    if replicas <= situation.current_replicas:
        return None
    window_s = situation.behavior.scale_up.stabilization_window_s
    lowest = situation.history.lowest_since(situation.now_s - window_s, replicas)
    held = max(lowest, situation.current_replicas)
    if window_s <= 0 or held >= replicas:
        return None
    return Step(
        Reason.SCALE_UP_STABILIZED,
        held,
        f"the last {window_s:.0f} s recommended as few as {lowest}",
    )


def stabilize_down(replicas: int, situation: Situation) -> Step | None:
    """Go down only to the highest recommendation of the window."""
    window_s = situation.behavior.scale_down.stabilization_window_s
    highest = situation.history.highest_since(situation.now_s - window_s, replicas)
    held = min(highest, situation.current_replicas)
    if replicas >= held:
        return None
    return Step(
        Reason.SCALE_DOWN_STABILIZED,
        held,
        f"the last {window_s:.0f} s recommended as many as {highest}",
    )


def hold_on_thin_evidence(replicas: int, situation: Situation) -> Step | None:
    """Lower nothing that was not seen, whole and fresh, for a full window."""
    current = situation.current_replicas
    if replicas >= current:
        return None
    if situation.evidence is not Evidence.COMPLETE:
        return Step(Reason.METRICS_INCOMPLETE, current, situation.incomplete_because or "unknown")
    window_s = max(situation.behavior.scale_down.stabilization_window_s, situation.least_view_s)
    since_s = situation.history.complete_since_s
    seen_s = 0.0 if since_s is None else situation.now_s - since_s
    if since_s is not None and seen_s >= window_s:
        return None
    return Step(
        Reason.HISTORY_TOO_SHORT,
        current,
        f"fresh and complete samples for {seen_s:.0f} s, a decrease needs {window_s:.0f} s",
    )


def hold_through_change(replicas: int, situation: Situation) -> Step | None:
    """Lower nothing while the pods are being replaced or many of them are down."""
    current = situation.current_replicas
    if replicas >= current:
        return None
    if situation.is_rolling_out:
        return Step(Reason.ROLLOUT_IN_PROGRESS, current, "the target is rolling out a change")
    if _breaker_is_open(situation):
        health = situation.health
        return Step(
            Reason.REPLICAS_UNHEALTHY,
            current,
            f"{health.failed + health.crashing} of {health.seen} replicas are down",
        )
    return None


def freeze_crashing(replicas: int, situation: Situation) -> Step | None:
    """More copies of what crashes burn accelerators and serve nobody."""
    health, current = situation.health, situation.current_replicas
    if replicas <= current or health.crashing <= CRASHING_SHARE * health.seen:
        return None
    return Step(
        Reason.REPLICAS_UNHEALTHY, current, f"{health.crashing} of {health.seen} replicas crash"
    )


def stop_at_shortage(replicas: int, situation: Situation) -> Step | None:
    """Ask for no more while the cluster cannot place what was asked for."""
    health, current = situation.health, situation.current_replicas
    if replicas <= current or health.unschedulable == 0:
        return None
    return Step(
        Reason.CAPACITY_SHORTAGE,
        current,
        f"{health.unschedulable} replicas cannot be placed: {health.shortage or 'no reason given'}",
    )


def _breaker_is_open(situation: Situation) -> bool:
    down = situation.health.failed + situation.health.crashing
    return down > BREAKER_REPLICAS and down > BREAKER_SHARE * situation.health.seen
