"""
Rounds over all fleets: one reading of the world, then a turn for each fleet, side by side.

A fleet whose turn hangs is left behind and skipped until it ends; no other fleet waits for it. What
Prometheus shows is awaited, but not by a change that somebody made meanwhile: that is acted upon at
once, with what was seen last.
"""

import asyncio
import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleetline.adapters import manifest
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.settings import Settings
from fleetline.entrypoints.acting import MayAct
from fleetline.entrypoints.observing import Observing, Seen
from fleetline.entrypoints.turns import Turns, World
from fleetline.errors import FleetlineError, ManifestError

REREAD_S: Final = 1.0
"""After a longer wait for Prometheus the cluster is read anew: writes rest on the present. [s]"""

AT_ONCE: Final = 50
"""Turns side by side: more only take memory, as writes have 16 connections."""

HANGING_S: Final = 0.25
"""If none of them ends for so long, others begin all the same. [s]"""

PATIENCE: Final = 0.5
"""Share of a period that a round waits for its turns; later ones end in the background."""


class Rounds:
    """Takes rounds; knows when the last one was."""

    def __init__(self, world: World, settings: Settings) -> None:
        """Begin without any memory."""
        self._world = world
        self._settings = settings
        self._turns = Turns(world, settings)
        self._bodies: dict[str, Mapping[str, Any]] = {}
        self._understood: dict[str, tuple[Mapping[str, Any], FleetObject]] = {}
        self._waited_s = 0.0
        """How long the last round waited for Prometheus. [s]"""
        self._observing = Observing(world.metrics, world.own, settings)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ended_s: dict[str, float] = {}
        """When the last turn of a fleet ended: what was read before does not show its write."""
        self.finished_s: float | None = None
        """When a round last read the world, or all began anew, on the loop's clock. [s]"""

    @property
    def decided_s(self) -> Mapping[str, float]:
        """When each fleet was last decided or found impossible, on the loop's clock. [s]"""
        return self._turns.decided_s

    async def take(self, may_act: MayAct, woken: asyncio.Event | None = None) -> None:
        """
        Take one round; `woken` ends the wait for Prometheus.

        Raises
        ------
        ObservationError
            If the API server cannot be read: nothing was decided.
        """
        loop = asyncio.get_running_loop()
        started_s = begun_s = loop.time()
        slow = self._waited_s > REREAD_S and self._understood
        known = {uid: one for uid, (_, one) in self._understood.items()}
        objects = known if slow else await self._read()
        asked_s = loop.time()
        seen = await self._observing.see([one.fleet for one in objects.values()], woken)
        self._waited_s = loop.time() - asked_s
        if slow or self._waited_s > REREAD_S:
            begun_s = loop.time()
            objects = await self._read()
        await self._take_turns(objects, seen, may_act, begun_s)
        self.finished_s = loop.time()
        self._world.own.round_duration.observe(self.finished_s - started_s - self._waited_s)
        self._world.own.queries.set(self._world.metrics.queries_in_turn)
        if self._world.prometheus.clock_skew_s is not None:
            self._world.own.skew.set(self._world.prometheus.clock_skew_s)

    async def _take_turns(
        self,
        objects: Mapping[str, FleetObject],
        seen: Seen,
        may_act: MayAct,
        begun_s: float,
    ) -> None:
        """Take a turn for each fleet, some at once; those that hang are waited for no longer."""
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + PATIENCE * self._settings.period_s
        active: set[asyncio.Task[None]] = set()
        for uid, body in self._bodies.items():
            is_newer = self._ended_s.get(uid, float("-inf")) < begun_s
            if uid in self._running or not is_newer:
                continue
            if len(active) >= AT_ONCE:
                active = await self._one_ended(active)
            task = asyncio.create_task(self._turns.take(uid, body, objects.get(uid), seen, may_act))
            self._running[uid] = task
            task.add_done_callback(functools.partial(self._ended, uid))
            active.add(task)
        if active:
            await asyncio.wait(active, timeout=max(0.0, ends_s - loop.time()))

    @staticmethod
    async def _one_ended(active: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        """Wait for one of the turns at least; if all of them hang, leave them behind."""
        done, pending = await asyncio.wait(
            active, timeout=HANGING_S, return_when=asyncio.FIRST_COMPLETED
        )
        return pending if done else set()

    async def _read(self) -> dict[str, FleetObject]:
        """Read the cluster, and understand its fleets."""
        view = await self._world.reader.read()
        objects = self._understand(view.fleets)
        self._world.cluster.look_at(view, list(objects.values()))
        self._world.metrics.look_at(list(objects.values()))
        return objects

    def begin_anew(self) -> None:
        """Forget what was learned: others acted meanwhile, and the statuses tell what they did."""
        self._turns.begin_anew()
        if self.finished_s is not None:
            self.finished_s = asyncio.get_running_loop().time()

    def _ended(self, uid: str, _: asyncio.Task[None]) -> None:
        self._running.pop(uid, None)
        self._ended_s[uid] = asyncio.get_running_loop().time()

    async def end(self, within_s: float) -> None:
        """Let turns in progress end, then cancel them."""
        await self._observing.stop()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=within_s)
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _understand(self, bodies: Sequence[Mapping[str, Any]]) -> dict[str, FleetObject]:
        """Parse the fleets; forget those that are gone. Deleted ones are left alone."""
        alive = {
            str(body["metadata"]["uid"]): body
            for body in bodies
            if not body["metadata"].get("deletionTimestamp")
        }
        for uid in self._bodies.keys() - alive.keys():
            metadata = self._bodies[uid]["metadata"]
            self._ended_s.pop(uid, None)
            self._world.reporter.forget(uid)
            self._world.own.forget((metadata["namespace"], metadata["name"]))
        self._bodies = alive
        self._turns.keep(alive.keys())
        objects: dict[str, FleetObject] = {}
        for uid, body in alive.items():
            status = self._world.reporter.status_of(body)
            known = self._understood.get(uid)
            if known is not None and known[0] is body and known[1].status is status:
                objects[uid] = known[1]  # a list brings the same body if nothing changed
                continue
            with contextlib.suppress(ManifestError, FleetlineError):  # its turn says so
                objects[uid] = manifest.parse({**body, "status": status})
        self._understood = {uid: (self._bodies[uid], one) for uid, one in objects.items()}
        return objects
