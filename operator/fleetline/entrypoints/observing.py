"""
What Prometheus shows, asked beside the rounds: a slow answer delays nobody who need not wait.

A round waits for the answer. A change that wakes the loop meanwhile does not: its round takes what
was seen last, as old as that is, and the answer goes to the round after it. One failure is bridged
in the same way: what was seen last is used for two periods more, and its samples age.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.prometheus import PrometheusError
from fleetline.adapters.settings import Settings
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Observations, Reading

NEW_S: Final = 1.0
"""What was seen so long ago counts as seen now. [s]"""

KEPT_PERIODS: Final = 2.0
"""How long what was seen is used while Prometheus fails: a reason that flips at every late answer
helps nobody. Samples older than `STALE_S` permit no decrease anyway."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """What Prometheus showed at a moment."""

    at_s: float
    """On the loop's clock. [s]"""
    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    observations: Mapping[str, Observations] = field(default_factory=dict)
    failure: str = ""
    because: str = ""

    def of(self, fleet: Fleet, now_s: float) -> Observations | str:
        """Return what it showed of a fleet, its samples as old as they are now; or why nothing."""
        asked = self.fleets.get(fleet.key)
        seen = self.observations.get(fleet.key)
        if asked is None or seen is None or (asked.uid, asked.target) != (fleet.uid, fleet.target):
            return self.because or "not observed"
        elapsed_s = now_s - self.at_s
        if elapsed_s <= NEW_S:
            return seen
        age_s = (seen.sample_age_s.value or 0.0) + elapsed_s  # at least that, if it was not known
        return replace(seen, sample_age_s=Reading(age_s))


class Observing:
    """At most one reading of Prometheus at a time, and the result of the last one."""

    def __init__(self, metrics: EngineMetrics, own: OwnMetrics, settings: Settings) -> None:
        """Begin without having seen anything."""
        self._metrics = metrics
        self._own = own
        self._longest_s = 2 * settings.prometheus_timeout_s
        self._kept_s = KEPT_PERIODS * settings.period_s
        self._task: asyncio.Task[Seen] | None = None
        self._last: Seen | None = None

    async def see(self, fleets: Sequence[Fleet], woken: asyncio.Event | None = None) -> Seen:
        """Return what Prometheus shows of some fleets; what it showed last if `woken` meanwhile."""
        if self._task is None:
            self._task = asyncio.create_task(self._observe(fleets))
        task = self._task
        bells = []
        if woken is not None and self._last is not None:
            bells.append(asyncio.create_task(woken.wait()))
        try:
            await asyncio.wait([task, *bells], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for bell in bells:
                bell.cancel()
        if task.done() or self._last is None:
            self._task = None
            self._last = self._bridged(await task)
        return self._last

    def _bridged(self, new: Seen) -> Seen:
        """Return what is new, or what is known if that is young and the new reading failed."""
        old = self._last
        if old is None or not new.failure or old.failure or new.at_s - old.at_s > self._kept_s:
            return new
        return old

    async def stop(self) -> None:
        """Give up a reading that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _observe(self, fleets: Sequence[Fleet]) -> Seen:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            async with asyncio.timeout(self._longest_s):
                observations = await self._metrics.observe(fleets)
        except PrometheusError as error:
            self._own.failures.labels(str(error.failure)).inc()
            return Seen(at_s=loop.time(), failure=str(error.failure), because=str(error))
        except TimeoutError:
            self._own.failures.labels("PrometheusUnreachable").inc()
            because = "cannot query Prometheus: it is too slow"
            return Seen(at_s=loop.time(), failure="PrometheusUnreachable", because=because)
        finally:
            self._own.observation_duration.observe(loop.time() - started_s)
        asked = {fleet.key: fleet for fleet in fleets}
        return Seen(at_s=loop.time(), fleets=asked, observations=observations)
