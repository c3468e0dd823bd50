"""One decision and the chain of verdicts that led to it; everything shown is printed from it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a count is what it is. Kubernetes' HPA words where the HPA has one."""

    description: str
    """What it says about the count, as a clause."""

    def __new__(cls, value: str, description: str) -> Self:
        """Make a member that is its word, and knows what the word means."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    DEMAND = (
        "Demand",
        "replicas for the largest arrival rate expected until a new replica would serve",
    )
    IN_FLIGHT = "InFlight", "replicas to hold the requests that are inside already, by Little's law"
    BACKLOG = "Backlog", "replicas to drain the waiting requests within spec.queueDrainSeconds"
    LATENCY_ABOVE_OBJECTIVE = (
        "LatencyAboveObjective",
        "one tenth more: a measured percentile misses its target and there is no model to size by",
    )
    WITHIN_TOLERANCE = (
        "WithinTolerance",
        "a replica is kept that slightly more demand would ask for again",
    )
    METRICS_UNAVAILABLE = (
        "MetricsUnavailable",
        "the count is held: demand or the ceiling of a replica is not known",
    )
    METRICS_INCOMPLETE = (
        "MetricsIncomplete",
        "nothing is removed: not all replicas show fresh metrics",
    )
    SCALE_UP_STABILIZED = (
        "ScaleUpStabilized",
        "held at the lowest recommendation of the scale-up window",
    )
    SCALE_DOWN_STABILIZED = (
        "ScaleDownStabilized",
        "held at the highest recommendation of the scale-down window",
    )
    SCALE_UP_LIMIT = "ScaleUpLimit", "spec.behavior.scaleUp allows no more replicas to be added now"
    SCALE_DOWN_LIMIT = (
        "ScaleDownLimit",
        "spec.behavior.scaleDown allows no more replicas to be removed now",
    )
    REPLICAS_UNHEALTHY = (
        "ReplicasUnhealthy",
        "replicas crash or are long overdue: they are replaced, or the count is held",
    )
    ROLLOUT_IN_PROGRESS = (
        "RolloutInProgress",
        "nothing is removed while the target rolls out a change",
    )
    HISTORY_TOO_SHORT = (
        "HistoryTooShort",
        "nothing is removed before a full window of fresh and complete metrics",
    )
    CAPACITY_SHORTAGE = (
        "CapacityShortage",
        "nothing is added while the cluster cannot place what was asked for",
    )
    OBJECTIVES_UNATTAINABLE = (
        "ObjectivesUnattainable",
        "no replica can meet an objective: sized for the nearest target that can be met",
    )
    TOO_MANY_REPLICAS = "TooManyReplicas", "spec.maxReplicas bounds the count"
    TOO_FEW_REPLICAS = "TooFewReplicas", "spec.minReplicas bounds the count"
    RESTORED = "Restored", "replicas that a change from outside took away are given back"
    PAUSED = "Paused", "spec.mode is Paused: the count is left alone"
    RECOMMEND_ONLY = "RecommendOnly", "spec.mode is Recommend: the count is shown, not written"
    SCALING_DISABLED = "ScalingDisabled", "the target has 0 replicas: somebody switched it off"
    CONFLICTING_AUTOSCALER = (
        "ConflictingAutoscaler",
        "another autoscaler owns the target: the count is left alone",
    )
    CONFLICTING_OWNER = (
        "ConflictingOwner",
        "an older ServingFleet owns the target: the count is left alone",
    )
    INVALID_SPEC = "InvalidSpec", "the spec cannot be understood: the count is left alone"
    TARGET_NOT_FOUND = "TargetNotFound", "the target does not exist"


@dataclass(frozen=True, slots=True)
class Step:
    """One rule's verdict."""

    reason: Reason
    replicas: int
    because: str
    """A clause with numbers and units, no capital, no full stop."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to run, and the chain of verdicts that led there."""

    current_replicas: int
    steps: tuple[Step, ...]
    recommended_replicas: int | None = None
    """What demand alone asks for, before windows, limits and bounds; None if it is not known."""

    @property
    def binding(self) -> Step:
        """The rule that set the final count: a rule that changes nothing adds no step."""
        return self.steps[-1]

    @property
    def desired_replicas(self) -> int:
        """The count the last rule left."""
        return self.binding.replicas

    @property
    def changes_replicas(self) -> bool:
        """Whether anything is to be done."""
        return self.desired_replicas != self.current_replicas

    def __str__(self) -> str:
        """Print as `4 -> 5 (TooManyReplicas): maxReplicas is 5`."""
        return (
            f"{self.current_replicas} -> {self.desired_replicas} "
            f"({self.binding.reason}): {self.binding.because}"
        )
