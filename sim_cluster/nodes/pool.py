"""All serving replicas and their routers, moved through time together."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim_cluster.informer import Key
    from sim_cluster.nodes.clock import LiveClock
    from sim_cluster.nodes.live_replica import Client, LiveReplica
    from sim_cluster.serving.replica import Request

TICK_S: Final = 0.02
"""How often the pool looks at the clock. [s on the wall]"""
LONGEST_STEP_S: Final = 0.05
"""Routers see completions at most this late. [simulated s]"""


class Source(Protocol):
    """Who brings requests: a router."""

    def dispatch(self, until_s: float) -> None:
        """Submit every request that arrives until then."""


class ReplicaPool:
    """
    The replicas of all simulated pods.

    Time moves in small steps. In each, routers first hand out what arrives in it, then every busy
    replica serves to its end: a replica never sees a request from its own past.
    """

    def __init__(self) -> None:
        self.replicas: dict[Key, LiveReplica] = {}
        self._busy: dict[Key, LiveReplica] = {}
        self.sources: list[Source] = []
        self.on_drained: list[Callable[[Key], None]] = []
        self.request_ids = itertools.count(1)
        self.clock_s = 0.0
        """Up to here everything has been served. [simulated s]"""

    def add(self, replica: LiveReplica) -> None:
        """Take a replica into service."""
        self.replicas[replica.key] = replica

    def remove(self, key: Key) -> None:
        """Take a replica out; what it had in flight is lost to its clients."""
        self._busy.pop(key, None)
        replica = self.replicas.pop(key, None)
        if replica is not None:
            replica.lose()

    def submit(self, replica: LiveReplica, request: Request, client: Client) -> None:
        """
        Hand a request to a replica.

        Raises
        ------
        ModelError
            If it could never fit into the replica's KV cache.
        """
        replica.submit(request, client)
        self._busy[replica.key] = replica

    def drain(self, key: Key) -> bool:
        """Let a replica finish what it has; say whether there is anything to wait for."""
        replica = self.replicas.get(key)
        if replica is None or replica.is_idle:
            return False
        replica.is_draining = True
        return True

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        while self.clock_s < until_s:
            end_s = min(self.clock_s + LONGEST_STEP_S, until_s)
            for source in self.sources:
                source.dispatch(end_s)
            self._serve(end_s)
            self.clock_s = end_s

    def _serve(self, end_s: float) -> None:
        for replica in list(self._busy.values()):
            replica.advance(end_s)
            if replica.is_idle:
                self._busy.pop(replica.key, None)
                if replica.is_draining:
                    for listener in self.on_drained:
                        listener(replica.key)

    async def run(self, clock: LiveClock) -> None:
        """Follow the clock until cancelled."""
        while True:
            self.advance(clock.now_s())
            await asyncio.sleep(TICK_S)
