"""
What Fleetline would have done in the past: the operator's turn, over a target that never was.

    before the beginning   the turn watches what ran and learns
    from then on           it sets the count of a target of its own, and meets the same arrivals

Arrivals and lengths are those that were measured, whatever the count. What is inside the replicas
follows from them: a share of the concurrency at the ceiling, and a backlog that grows by what
arrives less what the replicas can complete. Where both targets have the same replicas and nothing
waits, what was measured is what would have been seen, latencies included.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from fleetline.control.evidence import MATURE_S
from fleetline.control.fleet import Fleet, Mode
from fleetline.control.learning import missed_objectives
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Pod, Reading, Target, unknown
from fleetline.control.turn import Turn, take_turn
from fleetline.model.ceiling import Ceiling
from fleetline.model.replica import Replica

LONG_S: Final = 3600.0
ELSEWHERE: Final = "not measured at another number of replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What Prometheus showed at one moment of the past."""

    at_s: float
    """Unix time. [s]"""
    pods: tuple[Pod, ...]
    seen: Observations | str
    """Observations, or why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One moment, side by side."""

    at_s: float
    arrival_rate_per_s: float | None
    ran_replicas: int
    """Replicas that showed metrics."""
    ran_ceiling_per_s: float | None
    """Ceilings of those together. [1/s]"""
    ran_missed: bool | None
    """Whether a measured percentile was above its target; None if none was measured."""
    replicas: int
    """What Fleetline would have asked for."""
    ready_replicas: int
    ceiling_per_s: float | None
    """Ceilings of its ready replicas together. [1/s]"""
    backlog_requests: float
    reason: str


@dataclass(slots=True, kw_only=True)
class Imagined:
    """A target in the past: it has what it was told to have, after the time that a start takes."""

    replica: Replica | None
    unknown_because: str
    startup_s: float
    pods: list[Pod] = field(default_factory=list)
    now_s: float = 0.0
    begun: int = 0
    """Pods made so far; for their names."""

    async def read_target(self, _: Fleet) -> Target:
        """Show the pods as they are now."""
        return Target(
            replicas=len(self.pods),
            resource_version="1",
            uid="imagined",
            pods=tuple(self.as_of(pod) for pod in self.pods),
            replica=self.replica,
            replica_unknown_because=self.unknown_because,
        )

    async def write_replicas(self, _: Fleet, __: Target, replicas: int) -> None:
        """Add pods, or remove the youngest."""
        self.set_count(replicas, ready_in_s=self.startup_s)

    def set_count(self, replicas: int, *, ready_in_s: float) -> None:
        """Have so many pods; new ones are ready after a time, or have been if it is negative."""
        while len(self.pods) < replicas:
            ready_s = self.now_s + ready_in_s
            created_s = min(self.now_s, ready_s - self.startup_s)
            name = f"imagined-{self.begun}"
            self.pods.append(Pod(name=name, created_s=created_s, ready_since_s=ready_s))
            self.begun += 1
        del self.pods[replicas:]

    def as_of(self, pod: Pod) -> Pod:
        """Hide that a pod will be ready."""
        is_ready = pod.ready_since_s is not None and pod.ready_since_s <= self.now_s
        return pod if is_ready else replace(pod, ready_since_s=None)

    @property
    def ready(self) -> int:
        """Pods that serve."""
        return sum(self.as_of(pod).ready_since_s is not None for pod in self.pods)


class Backtest:
    """Takes a turn for each moment of the past."""

    def __init__(
        self, fleet: Fleet, target: Imagined, memory: Memory, *, begin_s: float, period_s: float
    ) -> None:
        """Watch what ran until `begin_s`, then decide. [s]"""
        self._fleet = replace(fleet, mode=Mode.AUTO)
        self._target = target
        self._memory = memory
        self._begin_s = begin_s
        self._period_s = period_s
        self._backlog_requests = 0.0
        self._last: Turn | None = None

    async def step(self, moment: Moment) -> Outcome | None:
        """Take one turn; None before the beginning."""
        target, ran = self._target, len(moment.pods)
        target.now_s = moment.at_s
        acts = moment.at_s >= self._begin_s
        if not acts and ran:
            target.set_count(ran, ready_in_s=-LONG_S)
        turn = await take_turn(
            self._fleet if acts else replace(self._fleet, mode=Mode.RECOMMEND),
            self._memory,
            target,
            self._seen(moment) if acts else moment.seen,
            now_s=moment.at_s,
            period_s=self._period_s,
        )
        self._memory, self._last = turn.memory, turn
        return self._outcome(moment, turn) if acts else None

    def _outcome(self, moment: Moment, turn: Turn) -> Outcome:
        seen = moment.seen if isinstance(moment.seen, Observations) else None
        ran, ready = len(moment.pods), self._target.ready
        return Outcome(
            at_s=moment.at_s,
            arrival_rate_per_s=None if seen is None else seen.arrival_rate_per_s.value,
            ran_replicas=ran,
            ran_ceiling_per_s=_together(turn, ran),
            ran_missed=None if seen is None else _missed(self._fleet, seen),
            replicas=len(self._target.pods),
            ready_replicas=ready,
            ceiling_per_s=_together(turn, ready),
            backlog_requests=self._backlog_requests,
            reason=str(turn.decision.binding.reason),
        )

    def _seen(self, moment: Moment) -> Observations | str:
        """What the imagined replicas would show."""
        seen, ready = moment.seen, self._target.ready
        if isinstance(seen, str):
            return seen
        rate_per_s = seen.arrival_rate_per_s.value
        ceiling = self._ceiling(ready)
        if rate_per_s is None or ceiling is None:
            return seen
        left_per_s = rate_per_s - ready * ceiling.capacity_per_s
        self._backlog_requests = max(0.0, self._backlog_requests + left_per_s * self._period_s)
        if ready == len(moment.pods) and self._backlog_requests == 0:
            return seen
        share = min(rate_per_s / max(1, ready), ceiling.capacity_per_s) / ceiling.rate_per_s
        return replace(
            seen,
            running_requests=Reading(ready * ceiling.concurrency * share),
            waiting_requests=Reading(self._backlog_requests),
            time_to_first_token_s=unknown(ELSEWHERE),
            inter_token_latency_s=unknown(ELSEWHERE),
            end_to_end_s=unknown(ELSEWHERE),
            latency_percentiles_s={name: unknown(ELSEWHERE) for name in seen.latency_percentiles_s},
            reporting_replicas=ready,
            frozen_replicas=0,
            is_partial=seen.is_partial or _is_incomplete(moment, seen),
        )

    def _ceiling(self, replicas: int) -> Ceiling | None:
        capacity = None if self._last is None else self._last.assessment.capacity
        ceiling = None if capacity is None else capacity.ceiling_at(max(1, replicas))
        return ceiling if ceiling is not None and ceiling.rate_per_s > 0 else None


def _is_incomplete(moment: Moment, seen: Observations) -> bool:
    """Whether less arrivals were seen than came."""
    mature = sum(moment.at_s - (pod.ready_since_s or 0.0) > MATURE_S for pod in moment.pods)
    return seen.frozen_replicas > 0 or seen.reporting_replicas < mature


def _missed(fleet: Fleet, seen: Observations) -> bool | None:
    """Whether a measured percentile was above its target; None if none was measured."""
    if not any(reading.is_known for reading in seen.latency_percentiles_s.values()):
        return None
    return bool(missed_objectives(fleet, seen))


def _together(turn: Turn, replicas: int) -> float | None:
    """Ceilings of so many replicas. [1/s]"""
    capacity = turn.assessment.capacity
    if capacity is None:
        return None
    return replicas * capacity.ceiling_at(max(1, replicas)).rate_per_s
