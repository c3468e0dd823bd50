"""
The policy: rules in the order they are applied, each a function of the count so far.

NEEDS say how many replicas the fleet needs, SAFEGUARDS what must not be done on thin evidence,
LIMITS how fast and how far the count may go. Every rule is monotone in the count it is given, so
more demand never ends in fewer replicas.
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, sqrt
from typing import Final

from fleetline.policy import limits
from fleetline.policy.decision import Decision, Reason, Step
from fleetline.policy.history import RESTORE_ONCE_IN_S, Evidence
from fleetline.policy.situation import Situation
from fleetline.policy.sizing import (
    replicas_for_concurrency,
    replicas_for_drain,
    replicas_for_rate,
)

Rule = Callable[[int, Situation], Step | None]

SURE_DEVIATIONS: Final = 1.645
"""One-sided 95 % of a normal: a gauge read once fluctuates by the square root of its value."""

BREAKER_SHARE: Final = 0.45
BREAKER_REPLICAS: Final = 3
"""More than 45 %, and more than 3, not ready at once: cluster-autoscaler's rule for nodes."""

IN_FLIGHT_FACTOR: Final = 2
"""What is inside may at most double what arrivals ask for: after an overload most of it is a queue
that drains once, not demand that stays."""

TOLERANCE: Final = 0.03
"""Relative change of demand that must fit before a replica is removed: at the edge between two
counts noise would flip them."""

CRASHING_SHARE: Final = 0.1
"""Above this share of crash-looping replicas more copies are not the answer."""


def meet_demand(_: int, situation: Situation) -> Step:
    """Enough replicas for the largest rate expected until a new one would serve."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None:
        return Step(
            Reason.METRICS_UNAVAILABLE,
            situation.current_replicas,
            f"holding: {situation.demand_unknown_because}",
        )
    if ceiling_at is None:
        return Step(
            Reason.METRICS_UNAVAILABLE,
            situation.current_replicas,
            f"holding: {situation.ceiling_unknown_because}",
        )
    rate_per_s = demand.expected_rate_per_s * demand.margin_factor
    needed = replicas_for_rate(rate_per_s, ceiling_at)
    return Step(
        Reason.DEMAND,
        needed,
        f"{demand.arrival_rate_per_s:.3g} req/s, {rate_per_s:.3g} to be ready for, at "
        f"{ceiling_at(max(1, needed)).rate_per_s:.3g} req/s per replica",
    )


def serve_in_flight(replicas: int, situation: Situation) -> Step | None:
    """By Little's law: as many as hold what is inside, less what may be chance."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None or ceiling_at is None:
        return None
    surely = demand.in_flight_requests - SURE_DEVIATIONS * sqrt(demand.in_flight_requests)
    most = max(replicas + IN_FLIGHT_FACTOR, IN_FLIGHT_FACTOR * replicas)
    needed = min(replicas_for_concurrency(surely, ceiling_at), most)
    if needed <= replicas:
        return None
    return Step(
        Reason.IN_FLIGHT,
        needed,
        f"{demand.in_flight_requests:.0f} requests are inside, one replica holds "
        f"{ceiling_at(needed).concurrency:.3g} at its ceiling",
    )


def drain_backlog(replicas: int, situation: Situation) -> Step | None:
    """Capacity to serve what arrives and to drain what waits in time: B / (C - lambda) <= T."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None or ceiling_at is None or demand.waiting_requests <= 0:
        return None
    backlog = demand.waiting_requests
    rate_per_s = demand.arrival_rate_per_s + backlog / situation.queue_drain_s
    needed = replicas_for_drain(rate_per_s, ceiling_at)
    if needed <= replicas:
        return None
    return Step(
        Reason.BACKLOG,
        needed,
        f"{backlog:.0f} requests wait; to drain them in {situation.queue_drain_s:.0f} s takes "
        f"{rate_per_s:.3g} req/s",
    )


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
    if left is None or _restored_lately(situation):
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
        f"{health.unschedulable} replicas have no node: {health.shortage or 'no reason given'}",
    )


def limit_scale_up(replicas: int, situation: Situation) -> Step | None:
    """Add no faster than the policies of behavior.scaleUp, but give back what was taken."""
    current = situation.current_replicas
    most = limits.most_replicas(situation)
    left = situation.restorable_replicas
    if left is not None and not _restored_lately(situation):
        most = max(most, left)
    allowed = max(current, most)
    if replicas <= allowed:
        return None
    return Step(Reason.SCALE_UP_LIMIT, allowed, f"behavior.scaleUp allows {allowed} now")


def limit_scale_down(replicas: int, situation: Situation) -> Step | None:
    """Remove no faster than the policies of behavior.scaleDown."""
    allowed = min(situation.current_replicas, limits.least_replicas(situation))
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


NEEDS: tuple[Rule, ...] = (meet_demand, serve_in_flight, drain_backlog)
"""What the requests ask for: their result is the recommendation."""

SAFEGUARDS: tuple[Rule, ...] = (
    keep_near_edge,
    relieve_latency,
    restore_taken,
    replace_failed,
    stabilize_up,
    stabilize_down,
    hold_on_thin_evidence,
    hold_through_change,
    freeze_crashing,
    stop_at_shortage,
)

LIMITS: tuple[Rule, ...] = (limit_scale_up, limit_scale_down, stay_within_bounds)

RULES: tuple[Rule, ...] = (*NEEDS, *SAFEGUARDS, *LIMITS)
"""The policy, in the order it is applied."""


def decide(situation: Situation) -> Decision:
    """Fold the rules over the situation; keep every verdict that changed something."""
    current = situation.current_replicas
    if situation.held_by is not None:
        reason, because = situation.held_by
        return Decision(current, (Step(reason, current, because),))
    if current == 0:
        because = "the target is scaled to 0 replicas: set it to 1 or more to switch scaling on"
        return Decision(0, (Step(Reason.SCALING_DISABLED, 0, because),))
    needs = _fold(Decision(current, ()), NEEDS, situation)
    known = needs.steps[0].reason is not Reason.METRICS_UNAVAILABLE
    recommended = needs.desired_replicas if known else None
    return _fold(replace(needs, recommended_replicas=recommended), RULES[len(NEEDS) :], situation)


def _fold(decision: Decision, rules: tuple[Rule, ...], situation: Situation) -> Decision:
    steps = list(decision.steps)
    for rule in rules:
        replicas = steps[-1].replicas if steps else decision.current_replicas
        step = rule(replicas, situation)
        if step is not None:
            steps.append(step)
    return replace(decision, steps=tuple(steps))


def _breaker_is_open(situation: Situation) -> bool:
    down = situation.health.failed + situation.health.crashing
    return down > BREAKER_REPLICAS and down > BREAKER_SHARE * situation.health.seen


def _restored_lately(situation: Situation) -> bool:
    restored_s = situation.history.restored_s
    return restored_s is not None and situation.now_s - restored_s < RESTORE_ONCE_IN_S
