"""What each condition of a ServingFleet means, why it may not be as it should, and the mend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetline.adapters.prometheus import Failure
from fleetline.control.evidence import Gap
from fleetline.policy.decision import Reason

MESSAGE = "see the message"

HINTS: Final[Mapping[str, str]] = {
    Reason.INVALID_SPEC: "edit the field that the message names",
    Reason.TARGET_NOT_FOUND: "create the target, or correct spec.scaleTargetRef",
    "TargetNotScalable": "name a kind that has a scale subresource in spec.scaleTargetRef",
    "Forbidden": "grant get and patch on the scale of the target's kind (extraScaleTargets of the "
    "chart); `fleetline doctor` lists all permissions",
    Reason.CONFLICTING_AUTOSCALER: "delete the other autoscaler, or set spec.mode to Recommend",
    Reason.CONFLICTING_OWNER: "delete one of the two fleets, or point it at a target of its own",
    "FailedGetScale": "the next turn tries again; if it stays, look at the API server",
    "FailedUpdateScale": "the next turn tries again; if it stays, look at admission webhooks",
    Gap.NO_SERIES: "let Prometheus scrape the pods of the target (PodMonitor or ServiceMonitor); "
    "`fleetline doctor` says which names and labels are looked for",
    Gap.INCOMPLETE: "some ready pods show no metrics: look at the targets page of Prometheus",
    Gap.FROZEN: "look at the engines' /metrics: an exporter hangs, or samples are pushed late; "
    "restart the pods that stand still",
    Gap.CLOCK_SKEW: "run NTP on the nodes of the operator and of Prometheus; decreases wait until "
    "their clocks agree",
    Gap.PARTIAL: "look at Prometheus' log and its remote stores: it says that data is missing",
    Gap.STALE: "look at the targets page of Prometheus: it scrapes seldom, or has stopped",
    Failure.UNREACHABLE: "check --prometheus-url, DNS and network policies of the operator",
    Failure.UNAUTHORIZED: "check the token file and its rights (prometheus.tokenSecret of the "
    "chart)",
    Failure.QUERY_ERROR: "ask Prometheus' own log: it refused a query",
    Failure.BAD_RESPONSE: "check that --prometheus-url leads to Prometheus and not to a login page",
    Reason.METRICS_UNAVAILABLE: "see MetricsAvailable",
    "ReplicaUnknown": "set spec.model.name or spec.accelerator.name, or add an AcceleratorProfile",
    Reason.PAUSED: "set spec.mode to Auto",
    Reason.RECOMMEND_ONLY: "set spec.mode to Auto to let it act",
    Reason.SCALING_DISABLED: "set the target to one replica or more",
    Reason.TOO_MANY_REPLICAS: "raise spec.maxReplicas, or accept that objectives may be missed",
    Reason.TOO_FEW_REPLICAS: "lower spec.minReplicas if fewer would do",
    Reason.SCALE_UP_LIMIT: "it goes on in the next period; spec.behavior.scaleUp sets the pace",
    Reason.SCALE_DOWN_LIMIT: "it goes on in the next period; spec.behavior.scaleDown sets the pace",
    Reason.CAPACITY_SHORTAGE: "add nodes with that accelerator, free some, or raise the quota "
    "that the message names",
    Reason.REPLICAS_UNHEALTHY: "read the log of a pod that is not ready",
    Reason.OBJECTIVES_UNATTAINABLE: "relax the objective to the nearest target, or choose a faster "
    "accelerator or more of them for a replica",
    "NotYetKnown": "wait for the operator's first turn; is it running?",
}
"""What to do about a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One type of condition."""

    means: str
    """What True means."""
    normal: str = "True"
    """The status of a fleet that needs no attention."""
    good: tuple[str, ...]
    """Reasons when it is as it should be."""
    bad: tuple[str, ...]
    """Reasons when it is not."""


_BLOCKED: Final = (
    *(Reason.TARGET_NOT_FOUND, "TargetNotScalable", "Forbidden"),
    *(Reason.CONFLICTING_AUTOSCALER, Reason.CONFLICTING_OWNER),
)

ASPECTS: Final[Mapping[str, Aspect]] = {
    "Ready": Aspect(
        means="the fleet is scaled as asked; a gap in the metrics does not flip it",
        good=("Scaling",),
        bad=(Reason.INVALID_SPEC, *_BLOCKED),
    ),
    "MetricsAvailable": Aspect(
        means="what decisions need is measured; False only after several turns without",
        good=("MetricsAvailable",),
        bad=(*Gap, *Failure),
    ),
    "AbleToScale": Aspect(
        means="the target can be read and written",
        good=("ReadyForNewScale",),
        bad=("FailedGetScale", "FailedUpdateScale", *_BLOCKED),
    ),
    "ScalingActive": Aspect(
        means="demand and the ceiling of a replica are known, and the loop may act",
        good=("CapacityKnown",),
        bad=(
            *(Reason.PAUSED, Reason.RECOMMEND_ONLY, Reason.SCALING_DISABLED, "ReplicaUnknown"),
            *(Reason.METRICS_UNAVAILABLE, Reason.INVALID_SPEC, *_BLOCKED),
            *("FailedGetScale", "FailedUpdateScale"),
        ),
    ),
    "ScalingLimited": Aspect(
        means="a bound or a limit holds the count",
        normal="False",
        good=("DesiredWithinRange",),
        bad=(
            *(Reason.TOO_MANY_REPLICAS, Reason.TOO_FEW_REPLICAS, Reason.SCALE_UP_LIMIT),
            *(Reason.SCALE_DOWN_LIMIT, Reason.CAPACITY_SHORTAGE, Reason.REPLICAS_UNHEALTHY),
        ),
    ),
    "ObjectivesAttainable": Aspect(
        means="one replica alone can meet every objective",
        good=("Attainable",),
        bad=(Reason.OBJECTIVES_UNATTAINABLE, "ReplicaUnknown"),
    ),
}
"""In the order of a status; `NotYetKnown` may stand in each, with status Unknown."""


def troubled(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Conditions of a status that are not as they should be, each with its hint."""
    rows = []
    for one in status.get("conditions") or ():
        kind = str(one.get("type", ""))
        normal = ASPECTS[kind].normal if kind in ASPECTS else "True"
        if one.get("status") == normal:
            continue
        reason = str(one.get("reason", ""))
        rows.append(
            {
                "condition": kind,
                "status": str(one.get("status", "")),
                "reason": reason,
                "since": one.get("lastTransitionTime"),
                "message": str(one.get("message", "")),
                "hint": HINTS.get(reason, MESSAGE),
            }
        )
    return rows


def status_of(status: Mapping[str, Any], kind: str) -> str:
    """Status of one condition; Unknown if it is not there."""
    for one in status.get("conditions") or ():
        if one.get("type") == kind:
            return str(one.get("status"))
    return "Unknown"
