"""
The policy: rules in the order they are applied, each a function of the count so far.

NEEDS say how many replicas the fleet needs, SAFEGUARDS what must not be done on thin evidence,
LIMITS how fast and how far the count may go. Every rule is monotone in the count it is given, so
more demand never ends in fewer replicas.
"""

from collections.abc import Callable
from dataclasses import replace

from fleetline.policy.decision import Decision, Reason, Step
from fleetline.policy.limits import limit_scale_down, limit_scale_up, stay_within_bounds
from fleetline.policy.needs import drain_backlog, meet_demand, serve_in_flight
from fleetline.policy.safeguards import (
    freeze_crashing,
    hold_on_thin_evidence,
    hold_through_change,
    keep_near_edge,
    relieve_latency,
    replace_failed,
    restore_taken,
    stabilize_down,
    stabilize_up,
    stop_at_shortage,
)
from fleetline.policy.situation import Situation

Rule = Callable[[int, Situation], Step | None]

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
