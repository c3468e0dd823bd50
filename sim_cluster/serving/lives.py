"""Replicas from birth to death: what a Deployment, a scheduler and a kubelet would do."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fleetline.errors import ModelError


class Victims(StrEnum):
    """Which ready replicas a scale-down takes; those that do not serve yet go first anyway."""

    NEWEST = "newest"
    """The one that has been ready for the shortest time: a ReplicaSet's order."""
    IDLEST = "idlest"
    """The one with the fewest requests in flight: a pod deletion cost that follows load."""


class Ending(StrEnum):
    """Why a replica is gone."""

    DRAINED = "drained"
    NEVER_READY = "never-ready"
    NODE_LOST = "node-lost"


@dataclass(slots=True, kw_only=True, eq=False)
class ReplicaLife:
    """One replica and the moments of its life; NaN for what has not happened. [s]"""

    number: int
    revision: int = 0
    node: int | None = None
    requested_s: float
    created_s: float = math.nan
    """When it got its accelerators: from here on it costs."""
    ready_s: float = math.nan
    drain_began_s: float = math.nan
    ended_s: float = math.nan
    ending: Ending | None = None
    restarts: int = 0
    slot: int | None = None
    """Where it lives in the arrays while it serves."""
    is_lost: bool = False
    """On a lost node, and the control plane has not replaced it yet."""

    @property
    def is_alive(self) -> bool:
        """Whether it counts against the number that was asked for."""
        return math.isnan(self.ended_s) and math.isnan(self.drain_began_s)

    @property
    def is_pending(self) -> bool:
        """Whether it waits for an accelerator."""
        return self.is_alive and math.isnan(self.created_s)

    @property
    def is_draining(self) -> bool:
        """Whether it serves its last requests."""
        return math.isnan(self.ended_s) and not math.isnan(self.drain_began_s)

    def held_s(self, until_s: float) -> float:
        """How long it held its accelerators, up to a moment. [s]"""
        if math.isnan(self.created_s):
            return 0.0
        end_s = until_s if math.isnan(self.ended_s) else min(self.ended_s, until_s)
        return max(0.0, end_s - self.created_s)


@dataclass(slots=True, kw_only=True)
class Inventory:
    """The accelerators of a cluster, in nodes that hold so many replicas each."""

    nodes: int
    replicas_per_node: int = 1
    lost: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Refuse a cluster that holds nothing."""
        if self.nodes < 1 or self.replicas_per_node < 1:
            raise ModelError(
                "an inventory must have nodes and replicas_per_node >= 1, "
                f"got {self.nodes} and {self.replicas_per_node}"
            )

    def place(self, lives: Iterable[ReplicaLife]) -> int | None:
        """Return the first node with room, or None."""
        used = [0] * self.nodes
        for life in lives:
            if life.node is not None and math.isnan(life.ended_s):
                used[life.node] += 1
        for node, count in enumerate(used):
            if node not in self.lost and count < self.replicas_per_node:
                return node
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """How a rolling update may deviate from the count that was asked for."""

    max_surge: int = 1
    max_unavailable: int = 0

    def __post_init__(self) -> None:
        """Refuse a rollout that could never move."""
        if (
            self.max_surge < 0
            or self.max_unavailable < 0
            or not (self.max_surge or self.max_unavailable)
        ):
            raise ModelError(
                "max_surge and max_unavailable must be >= 0 and not both 0, "
                f"got {self.max_surge} and {self.max_unavailable}"
            )


def births(lives: list[ReplicaLife], *, asked: int, revision: int, surge: Surge) -> int:
    """How many replicas of the newest revision a Deployment would create now."""
    alive = [life for life in lives if life.is_alive]
    fresh = sum(life.revision == revision for life in alive)
    if fresh == len(alive):
        return max(0, asked - fresh)
    return max(0, min(asked - fresh, asked + surge.max_surge - len(alive)))


def victims(
    lives: list[ReplicaLife],
    *,
    asked: int,
    revision: int,
    surge: Surge,
    load_of: Callable[[ReplicaLife], float],
) -> list[ReplicaLife]:
    """
    Which replicas a Deployment would delete now.

    Those that do not serve go first (unscheduled before starting), then by `load_of`, then the
    newest. During a rolling update old replicas go only as far as enough others are ready.
    """
    alive = sorted(
        (life for life in lives if life.is_alive),
        key=lambda life: (_stage(life), load_of(life), -_moment(life), -life.number),
    )
    fresh = [life for life in alive if life.revision == revision]
    old = [life for life in alive if life.revision != revision]
    surplus = fresh[: max(0, len(fresh) - asked)]
    ready = sum(_stage(life) == 2 for life in alive) - sum(_stage(one) == 2 for one in surplus)
    spare = max(0, ready - max(0, asked - surge.max_unavailable))
    idle = [life for life in old if _stage(life) < 2]
    serving = [life for life in old if _stage(life) == 2]
    return surplus + idle + serving[:spare]


def _stage(life: ReplicaLife) -> int:
    if life.is_lost or math.isnan(life.created_s):
        return 0
    return 2 if life.slot is not None else 1


def _moment(life: ReplicaLife) -> float:
    return life.ready_s if life.slot is not None else life.requested_s
