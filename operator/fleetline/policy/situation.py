"""All that a rule may look at: what runs, what arrives, what one replica takes, what was before."""

from collections.abc import Callable
from dataclasses import dataclass, field

from fleetline.model.ceiling import Ceiling
from fleetline.policy.behavior import Behavior
from fleetline.policy.decision import Reason
from fleetline.policy.history import RESTORE_ONCE_IN_S, Evidence, History

CeilingAt = Callable[[int], Ceiling]
"""Ceiling of one replica among so many behind the router."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What has to be served; all of it is known, or there is no Demand."""

    arrival_rate_per_s: float
    """Requests offered now. [1/s]"""
    expected_rate_per_s: float
    """The likely maximum until a replica asked for now would serve. [1/s]"""
    in_flight_requests: float = 0.0
    """Running and waiting, in all replicas."""
    waiting_requests: float = 0.0
    margin_factor: float = 1.0
    """Learned from how often the objectives held: the expected rate is multiplied by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the replicas are, as counts."""

    ready: int = 0
    starting: int = 0
    """Not ready yet, within the time a start may take: coming capacity."""
    failed: int = 0
    """Scheduled, but not ready although a start cannot take that long: no capacity."""
    crashing: int = 0
    """Restarting again and again, or ended in failure."""
    unschedulable: int = 0
    """Without a node for longer than a node takes to appear, or refused by a quota."""
    shortage: str = ""
    """What the scheduler or the API server says about those."""

    @property
    def seen(self) -> int:
        """Pods that were seen and are not terminating."""
        return self.ready + self.starting + self.failed + self.crashing + self.unschedulable


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One fleet at one moment."""

    now_s: float
    current_replicas: int
    """What the scale subresource asks for."""
    min_replicas: int
    max_replicas: int
    behavior: Behavior = field(default_factory=Behavior)
    demand: Demand | None = None
    demand_unknown_because: str = "not observed"
    ceiling_at: CeilingAt | None = None
    ceiling_unknown_because: str = "not modelled"
    queue_drain_s: float = 60.0
    evidence: Evidence = Evidence.UNKNOWN
    incomplete_because: str = ""
    latency_above_objective: str = ""
    """Which measured percentile is above its target, in words; empty if none is."""
    health: Health = Health()
    is_rolling_out: bool = False
    least_view_s: float = 0.0
    """How long the fleet must have been seen before a decrease, besides the window. [s]"""
    held_by: tuple[Reason, str] | None = None
    """A reason outside the policy not to touch the target at all, bounds included."""
    history: History = field(default_factory=History)

    @property
    def restorable_replicas(self) -> int | None:
        """What somebody took away since the last turn, if it may be given back at once."""
        left = self.history.left_replicas
        if left is None or left <= self.current_replicas or self.current_replicas == 0:
            return None
        return left

    @property
    def was_restored_lately(self) -> bool:
        """Whether a count was given back at once so lately that once more would be a fight."""
        restored_s = self.history.restored_s
        return restored_s is not None and self.now_s - restored_s < RESTORE_ONCE_IN_S
