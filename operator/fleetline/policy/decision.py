"""One decision and the chain of verdicts that led to it; everything shown is printed from it."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a count is what it is. Kubernetes' HPA words where the HPA has one."""

    DEMAND = "Demand"
    IN_FLIGHT = "InFlight"
    BACKLOG = "Backlog"
    LATENCY_ABOVE_OBJECTIVE = "LatencyAboveObjective"
    WITHIN_TOLERANCE = "WithinTolerance"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    REPLICAS_STARTING = "ReplicasStarting"
    REPLICAS_UNHEALTHY = "ReplicasUnhealthy"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"
    HISTORY_TOO_SHORT = "HistoryTooShort"
    CAPACITY_SHORTAGE = "CapacityShortage"
    OBJECTIVES_UNATTAINABLE = "ObjectivesUnattainable"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    TOO_FEW_REPLICAS = "TooFewReplicas"
    RESTORED = "Restored"
    PAUSED = "Paused"
    RECOMMEND_ONLY = "RecommendOnly"
    SCALING_DISABLED = "ScalingDisabled"
    CONFLICTING_AUTOSCALER = "ConflictingAutoscaler"
    CONFLICTING_OWNER = "ConflictingOwner"
    INVALID_SPEC = "InvalidSpec"
    TARGET_NOT_FOUND = "TargetNotFound"


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
