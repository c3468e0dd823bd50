"""How a router chooses among ready replicas."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.nodes.live_replica import LiveReplica


class Balance(Protocol):
    """A rule of choice."""

    def choose(self, replicas: Sequence[LiveReplica]) -> LiveReplica:
        """Choose one of at least one replica."""
        ...


class LeastLoaded:
    """The replica with the fewest requests in flight; equals take turns."""

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, replicas: Sequence[LiveReplica]) -> LiveReplica:
        """Choose one of at least one replica."""
        self._turn += 1
        offset = self._turn % len(replicas)
        return min((*replicas[offset:], *replicas[:offset]), key=_in_flight)


class RoundRobin:
    """Each in turn, whatever it has to do."""

    def __init__(self) -> None:
        self._turn = -1

    def choose(self, replicas: Sequence[LiveReplica]) -> LiveReplica:
        """Choose one of at least one replica."""
        self._turn += 1
        return replicas[self._turn % len(replicas)]


class PowerOfTwo:
    """The less loaded of two drawn at random."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - a simulation

    def choose(self, replicas: Sequence[LiveReplica]) -> LiveReplica:
        """Choose one of at least one replica."""
        if len(replicas) == 1:
            return replicas[0]
        return min(self._chance.sample(replicas, 2), key=_in_flight)


NAMES: Final = ("least-loaded", "round-robin", "power-of-two")


def balance_named(name: str, *, seed: int = 0) -> Balance:
    """Look up a rule of choice by its name."""
    match name:
        case "least-loaded":
            return LeastLoaded()
        case "round-robin":
            return RoundRobin()
        case "power-of-two":
            return PowerOfTwo(seed)
    raise ValueError(f"balance must be one of {', '.join(NAMES)}, got {name!r}")


def _in_flight(replica: LiveReplica) -> int:
    return replica.in_flight
