"""
Rounds over all fleets: one reading of the world, then a turn for each fleet, side by side.

A fleet whose turn hangs is left behind and skipped until it ends; no other fleet waits for it. What
Prometheus shows is awaited, but not by a change that somebody made meanwhile: that is acted upon at
once, with what was seen last.
"""

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetline.adapters import manifest, status
from fleetline.adapters.conditions import Trouble
from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.prometheus import Prometheus
from fleetline.adapters.remembering import remembered
from fleetline.adapters.scale import TargetError
from fleetline.adapters.settings import Settings
from fleetline.adapters.snapshot import SnapshotReader
from fleetline.control.memory import Memory  # noqa: TC001 - one import block reads better
from fleetline.control.turn import Turn, take_turn
from fleetline.entrypoints.acting import Guarded, MayAct
from fleetline.entrypoints.observing import Observing, Seen
from fleetline.entrypoints.reporting import Reporter, trouble_line, turn_line
from fleetline.errors import FleetlineError, ManifestError, ObservationError
from fleetline.policy.decision import Reason

LOGGER: Final = logging.getLogger("fleetline")
REREAD_S: Final = 1.0
"""After a longer wait for Prometheus the cluster is read anew: writes rest on the present. [s]"""

AT_ONCE: Final = 50
"""Turns side by side: more only take memory, as writes have 16 connections."""

HANGING_S: Final = 0.25
"""If none of them ends for so long, others begin all the same. [s]"""

PATIENCE: Final = 0.5
"""Share of a period that a round waits for its turns; later ones end in the background."""


@dataclass(slots=True, kw_only=True)
class World:
    """The adapters that a round works with."""

    reader: SnapshotReader
    cluster: KubernetesCluster
    metrics: EngineMetrics
    prometheus: Prometheus
    reporter: Reporter
    own: OwnMetrics


class Rounds:
    """Takes rounds; knows when each fleet was last decided."""

    def __init__(self, world: World, settings: Settings) -> None:
        """Begin without any memory."""
        self._world = world
        self._settings = settings
        self._memories: dict[str, Memory] = {}
        self._bodies: dict[str, Mapping[str, Any]] = {}
        self._understood: dict[str, tuple[Mapping[str, Any], FleetObject]] = {}
        self._waited_s = 0.0
        """How long the last round waited for Prometheus. [s]"""
        self._term = 0
        """Grows whenever all begins anew: a turn of an earlier term leaves nothing behind."""
        self._observing = Observing(world.metrics, world.own, settings)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ended_s: dict[str, float] = {}
        """When the last turn of a fleet ended: what was read before does not show its write."""
        self.decided_s: dict[str, float] = {}
        """When each fleet was last decided or found impossible, on the loop's clock. [s]"""
        self.finished_s: float | None = None
        """When a round last read the world, or all began anew, on the loop's clock. [s]"""

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
            task = asyncio.create_task(self._turn(uid, body, objects.get(uid), seen, may_act))
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
        self._memories.clear()
        self.decided_s.clear()
        if self.finished_s is not None:
            self.finished_s = asyncio.get_running_loop().time()
        self._term += 1

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
            self._memories.pop(uid, None)
            self.decided_s.pop(uid, None)
            self._ended_s.pop(uid, None)
            self._world.reporter.forget(uid)
            self._world.own.forget((metadata["namespace"], metadata["name"]))
        self._bodies = alive
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

    async def _turn(
        self,
        uid: str,
        body: Mapping[str, Any],
        one: FleetObject | None,
        seen: Seen,
        may_act: MayAct,
    ) -> None:
        """One fleet's turn, within its own time; whatever goes wrong stays with this fleet."""
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            async with asyncio.timeout(self._settings.turn_timeout_s):
                if one is None:
                    await self._tell_invalid(body)
                else:
                    await self._decide(uid, body, one, seen, may_act)
            self.decided_s[uid] = loop.time()
        except TimeoutError:
            self._world.own.failures.labels("TurnTimeout").inc()
            LOGGER.warning("turn of %s took too long", _key(body))
        except ObservationError as error:
            self._world.own.failures.labels("TurnFailed").inc()
            LOGGER.warning("turn of %s failed: %s", _key(body), error)
        except Exception:
            self._world.own.failures.labels("Bug").inc()
            LOGGER.exception("turn of %s met a bug", _key(body))
        finally:
            self._world.own.turn_duration.observe(loop.time() - started_s)

    async def _decide(
        self,
        uid: str,
        body: Mapping[str, Any],
        one: FleetObject,
        seen: Seen,
        may_act: MayAct,
    ) -> None:
        world, now_s, term = self._world, time.time(), self._term
        if uid not in self._memories:
            self._memories[uid] = remembered(one, now_s=now_s)
        view = seen.of(one.fleet, asyncio.get_running_loop().time())
        try:
            turn = await take_turn(
                one.fleet,
                self._memories[uid],
                Guarded(world.cluster, may_act),
                view,
                now_s=now_s,
                period_s=self._settings.period_s,
            )
        except TargetError as error:
            await self._tell_trouble(body, Trouble(error.reason, str(error)))
            return
        if term != self._term or uid not in self._bodies:
            return
        self._memories[uid] = turn.memory
        world.own.note(turn)
        self._note_failure(turn)
        background = status.Background(
            discovery=world.cluster.discoveries.get(one.fleet.key),
            evidence=world.metrics.evidence.get(one.fleet.key),
            price_of=world.cluster.price_usd_per_hour,
            metrics_failure=seen.failure,
        )
        await world.reporter.tell_scaled(turn)
        await world.reporter.tell(body, status.render(turn, one, background), line=turn_line(turn))

    def _note_failure(self, turn: Turn) -> None:
        error = turn.write_failure
        if error is None:
            return
        reason = error.reason if isinstance(error, TargetError) else "FailedUpdateScale"
        self._world.own.failures.labels(reason).inc()
        LOGGER.warning("count of %s not written: %s", turn.fleet.key, error)

    async def _tell_invalid(self, body: Mapping[str, Any]) -> None:
        try:
            manifest.parse(body)
        except FleetlineError as error:
            await self._tell_trouble(body, Trouble(Reason.INVALID_SPEC, str(error)))

    async def _tell_trouble(self, body: Mapping[str, Any], trouble: Trouble) -> None:
        metadata, world = body["metadata"], self._world
        key = (metadata["namespace"], metadata["name"])
        world.own.blank(key)
        world.own.count(key, str(trouble.reason))
        rendered = status.render_trouble(
            trouble,
            world.reporter.status_of(body),
            generation=int(metadata.get("generation") or 0),
            now_s=time.time(),
        )
        await world.reporter.tell(body, rendered, line=trouble_line(_key(body), trouble))


def _key(body: Mapping[str, Any]) -> str:
    metadata = body["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
