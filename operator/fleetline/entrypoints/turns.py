"""
Turns of single fleets: observe, decide, act, and tell what was decided or what is in the way.

A turn has its own time, and whatever goes wrong in it stays with its fleet. What it learned is kept
for the next one.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
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
from fleetline.entrypoints.observing import Seen
from fleetline.entrypoints.reporting import Reporter, trouble_line, turn_line
from fleetline.errors import FleetlineError, ObservationError
from fleetline.policy.decision import Reason

LOGGER: Final = logging.getLogger("fleetline")


@dataclass(slots=True, kw_only=True)
class World:
    """The adapters that rounds and turns work with."""

    reader: SnapshotReader
    cluster: KubernetesCluster
    metrics: EngineMetrics
    prometheus: Prometheus
    reporter: Reporter
    own: OwnMetrics


class Turns:
    """Takes turns; knows when each fleet was last decided."""

    def __init__(self, world: World, settings: Settings) -> None:
        """Begin without any memory."""
        self._world = world
        self._settings = settings
        self._memories: dict[str, Memory] = {}
        self._alive: Collection[str] = ()
        self._term = 0
        """Grows whenever all begins anew: a turn of an earlier term leaves nothing behind."""
        self.decided_s: dict[str, float] = {}
        """When each fleet was last decided or found impossible, on the loop's clock. [s]"""

    def keep(self, alive: Collection[str]) -> None:
        """Forget all fleets but these."""
        for uid in self._memories.keys() - alive:
            self._memories.pop(uid)
        for uid in self.decided_s.keys() - alive:
            self.decided_s.pop(uid)
        self._alive = alive

    def begin_anew(self) -> None:
        """Forget what was learned, also by turns in progress."""
        self._memories.clear()
        self.decided_s.clear()
        self._term += 1

    async def take(
        self,
        uid: str,
        body: Mapping[str, Any],
        one: FleetObject | None,
        seen: Seen,
        may_act: MayAct,
    ) -> None:
        """Take one fleet's turn, within its own time; whatever goes wrong stays with this fleet."""
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
        if term != self._term or uid not in self._alive:
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
