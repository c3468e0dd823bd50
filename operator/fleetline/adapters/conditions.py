"""
A fleet's state as Kubernetes conditions; `lastTransitionTime` moves only when a status flips.

`Ready` says that the fleet is scaled as asked: it does not flip on a gap in the metrics.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetline.control.evidence import Gap
from fleetline.control.memory import UNKNOWN_TURNS_BEFORE_ALARM
from fleetline.control.turn import Turn
from fleetline.policy.decision import Decision, Reason
from fleetline.policy.history import Evidence

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
LONGEST_MESSAGE: Final = 1000

NOT_READY: Final = frozenset(
    {
        *(Reason.INVALID_SPEC, Reason.TARGET_NOT_FOUND, Reason.CONFLICTING_AUTOSCALER),
        *(Reason.CONFLICTING_OWNER, "TargetNotScalable", "Forbidden"),
    }
)
NOT_ABLE: Final = frozenset(
    {*NOT_READY, "FailedGetScale", "FailedUpdateScale"} - {Reason.INVALID_SPEC}
)
LIMITED: Final = frozenset(
    {
        *(Reason.TOO_MANY_REPLICAS, Reason.TOO_FEW_REPLICAS, Reason.SCALE_UP_LIMIT),
        *(Reason.SCALE_DOWN_LIMIT, Reason.CAPACITY_SHORTAGE, Reason.REPLICAS_UNHEALTHY),
    }
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One aspect, as it is now."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a turn could not be taken."""

    reason: str
    message: str


def of_turn(turn: Turn, metrics_failure: str) -> tuple[Condition, ...]:
    """Conditions after a turn; `metrics_failure` is the reason if Prometheus as a whole failed."""
    decision = turn.decision
    reason = decision.binding.reason
    blocked = reason if reason in NOT_READY else ""
    return (
        Condition("Ready", FALSE, blocked, decision.binding.because)
        if blocked
        else Condition("Ready", TRUE, "Scaling", "the fleet is scaled as asked"),
        _metrics_available(turn, metrics_failure),
        Condition("AbleToScale", FALSE, blocked, decision.binding.because)
        if blocked
        else Condition("AbleToScale", TRUE, "ReadyForNewScale", "the target can be scaled"),
        _scaling_active(turn),
        _scaling_limited(decision),
        _objectives_attainable(turn),
    )


def of_trouble(trouble: Trouble) -> tuple[Condition, ...]:
    """Conditions when the fleet could not be read or understood; others stay as they were."""
    conditions = [Condition("ScalingActive", FALSE, trouble.reason, trouble.message)]
    if trouble.reason in NOT_READY:
        conditions.append(Condition("Ready", FALSE, trouble.reason, trouble.message))
    if trouble.reason in NOT_ABLE:
        conditions.append(Condition("AbleToScale", FALSE, trouble.reason, trouble.message))
    return tuple(conditions)


def merged(
    old: Iterable[Mapping[str, Any]],
    new: Iterable[Condition],
    *,
    generation: int,
    now: str,
) -> list[dict[str, Any]]:
    """Conditions for the status: new over old, all types present, in the order of `TYPES`."""
    known = {str(one.get("type")): dict(one) for one in old}
    fresh = {one.type: one for one in new}
    result = []
    for kind in TYPES:
        before, one = known.get(kind), fresh.get(kind)
        if one is None:
            if before is not None:
                result.append(before)
                continue
            one = Condition(kind, UNKNOWN, "NotYetKnown", "not looked at yet")
        flipped = before is None or before.get("status") != one.status
        result.append(
            {
                "type": kind,
                "status": one.status,
                "observedGeneration": generation,
                "lastTransitionTime": now
                if flipped or before is None
                else before["lastTransitionTime"],
                "reason": str(one.reason),
                "message": one.message[:LONGEST_MESSAGE],
            }
        )
    return result


TYPES: Final = (
    *("Ready", "MetricsAvailable", "AbleToScale", "ScalingActive", "ScalingLimited"),
    "ObjectivesAttainable",
)


def _metrics_available(turn: Turn, failure: str) -> Condition:
    kind, situation, gap = "MetricsAvailable", turn.assessment.situation, turn.assessment.gap
    if situation.demand is None or situation.evidence is Evidence.UNKNOWN:
        reason = failure or str(gap or Gap.NO_SERIES)
        because = situation.demand_unknown_because or situation.incomplete_because
        if turn.memory.unknown_turns < UNKNOWN_TURNS_BEFORE_ALARM:
            return Condition(kind, UNKNOWN, reason, because)
        return Condition(kind, FALSE, reason, because)
    if turn.memory.incomplete_turns >= UNKNOWN_TURNS_BEFORE_ALARM:
        reason = str(gap or Gap.INCOMPLETE)
        return Condition(kind, FALSE, reason, situation.incomplete_because)
    return Condition(kind, TRUE, "MetricsAvailable", "what decisions need is measured")


def _scaling_active(turn: Turn) -> Condition:
    kind, situation = "ScalingActive", turn.assessment.situation
    reason = turn.decision.binding.reason
    if reason in NOT_READY or reason in (Reason.PAUSED, Reason.SCALING_DISABLED):
        return Condition(kind, FALSE, reason, turn.decision.binding.because)
    if turn.recommends_only:
        return Condition(kind, FALSE, Reason.RECOMMEND_ONLY, "spec.mode is Recommend")
    if situation.ceiling_at is None:
        return Condition(kind, FALSE, "ReplicaUnknown", situation.ceiling_unknown_because)
    if turn.memory.unknown_turns >= UNKNOWN_TURNS_BEFORE_ALARM:
        because = situation.demand_unknown_because
        return Condition(kind, FALSE, Reason.METRICS_UNAVAILABLE, because)
    return Condition(kind, TRUE, "CapacityKnown", "demand and the ceiling of a replica are known")


def _scaling_limited(decision: Decision) -> Condition:
    step = decision.binding
    if step.reason in LIMITED:
        return Condition("ScalingLimited", TRUE, step.reason, step.because)
    return Condition(
        "ScalingLimited", FALSE, "DesiredWithinRange", "no bound or limit changes the count"
    )


def _objectives_attainable(turn: Turn) -> Condition:
    kind, capacity = "ObjectivesAttainable", turn.assessment.capacity
    if capacity is None:
        because = turn.assessment.situation.ceiling_unknown_because
        return Condition(kind, UNKNOWN, "ReplicaUnknown", because)
    if capacity.unattainable:
        because = f"{capacity.unattainable_because}; sized for the nearest target instead"
        return Condition(kind, FALSE, Reason.OBJECTIVES_UNATTAINABLE, because)
    return Condition(kind, TRUE, "Attainable", "one replica meets every objective")
