"""What the user asked for, parsed: one ServingFleet as the control loop knows it."""

from dataclasses import dataclass, field
from enum import StrEnum

from fleetline.model.objective import Objective
from fleetline.policy.behavior import Behavior


class Mode(StrEnum):
    """Whether the loop may act."""

    AUTO = "Auto"
    RECOMMEND = "Recommend"
    PAUSED = "Paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetReference:
    """The scaled object; always in the namespace of the fleet."""

    api_version: str = "apps/v1"
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The replicas of one model under one ServingFleet."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_s: float
    """Creation in Unix time: of two fleets that own one target the older wins. [s]"""
    target: TargetReference
    objectives: tuple[Objective, ...]
    min_replicas: int = 1
    max_replicas: int
    queue_drain_s: float = 60.0
    """A backlog has to drain within this time. [s]"""
    mode: Mode = Mode.AUTO
    behavior: Behavior = field(default_factory=Behavior)

    @property
    def key(self) -> str:
        """What identifies the fleet in memory and in logs: `namespace/name`."""
        return f"{self.namespace}/{self.name}"
