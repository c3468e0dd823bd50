"""What Prometheus is asked less often than every turn: names, length histograms, the interval."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fleetline.adapters import queries
from fleetline.adapters.engine_metrics import Quantity
from fleetline.adapters.observations import Rows
from fleetline.adapters.pod_rows import GAUGES
from fleetline.adapters.prometheus import Answer, Prometheus, PrometheusError
from fleetline.adapters.readings import scrape_interval_s as interval_of
from fleetline.adapters.scope import Scope

NAMES_PERIOD_S: Final = 60.0
"""While something is missing: an engine may be about to show itself. [s]"""

KNOWN_NAMES_PERIOD_S: Final = 600.0
"""While all that is needed is there; the question touches every series. [s]"""

LENGTHS_PERIOD_S: Final = 300.0
INTERVAL_PERIOD_S: Final = 600.0
MOST_NAMED: Final = 20
"""Namespaces that are named in an address; beyond them names of all namespaces are asked for."""

SCRAPES_PER_WINDOW: Final = 4.0
"""A rate needs two samples; four survive a lost scrape and a jitter."""

USUAL_PERIOD_S: Final = 15.0
SAMPLED_PODS: Final = 3


@dataclass(slots=True)
class _Known:
    """The last answers, and when they came."""

    names: frozenset[str] = frozenset()
    names_s: float | None = None
    lengths: Answer | None = None
    lengths_s: float | None = None
    interval_s: float | None = None
    interval_at_s: float | None = None


class Seldom:
    """Asks now and then, remembers in between."""

    def __init__(
        self,
        prometheus: Prometheus,
        *,
        period_s: float,
        scrape_interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask `prometheus`; until it is read, the scrape interval is assumed. [s]"""
        self._clock = clock
        self._prometheus = prometheus
        self._period_s = period_s
        self._interval_s = scrape_interval_s
        self._known = _Known()
        self.something_is_missing = True
        """
        Whether a fleet does not show what is inside or arrives, so that there may be new names.

        Some engines show a counter only when it has counted: not before the first request ended.
        """

    @property
    def names(self) -> frozenset[str]:
        """Metric names that exist in the fleets' namespaces."""
        return self._known.names

    @property
    def interval_s(self) -> float | None:
        """Scrape interval as it was read; None before. [s]"""
        return self._known.interval_s

    @property
    def window_s(self) -> float:
        """Window of rates: at least four scrapes and four turns. [s]"""
        interval_s = self._known.interval_s or self._interval_s
        return SCRAPES_PER_WINDOW * max(interval_s, min(self._period_s, USUAL_PERIOD_S))

    async def read_names(self, scope: Scope) -> None:
        """Read which names exist; while there are none, at every turn."""
        known, now_s = self._known, self._clock()
        period_s = NAMES_PERIOD_S if self.something_is_missing else KNOWN_NAMES_PERIOD_S
        fresh = known.names_s is not None and now_s - known.names_s < period_s
        if fresh and known.names:
            return
        wide = len(scope.namespaces) > MOST_NAMED  # the selector is part of an address
        asked = replace(scope, namespaces=()) if wide else scope
        known.names = await self._prometheus.names(queries.candidate_series(asked))
        known.names_s = now_s

    async def lengths(self, scope: Scope) -> Answer:
        """Read length histograms; they are good to have, never needed."""
        known, now_s = self._known, self._clock()
        due = known.lengths_s is None or now_s - known.lengths_s >= LENGTHS_PERIOD_S
        query = queries.length_buckets(scope, known.names)
        if query and (due or known.lengths is None or not known.lengths.rows):
            try:
                known.lengths = await self._prometheus.query(query)
                known.lengths_s = now_s
            except PrometheusError:
                known.lengths = known.lengths or Answer(rows=())
        return known.lengths or Answer(rows=())

    async def read_interval(self, scope: Scope, rows: Rows) -> None:
        """Read the scrape interval off the time stamps of a few series."""
        known, now_s = self._known, self._clock()
        if known.interval_at_s is not None and now_s - known.interval_at_s < INTERVAL_PERIOD_S:
            return
        pods = list(itertools.islice(rows.by_pod.get(GAUGES, ()), SAMPLED_PODS))
        names = [name for name in queries.names_of(Quantity.RUNNING) if name in known.names]
        if not pods or not names:
            return
        try:
            series, _ = await self._prometheus.raw(queries.samples(scope, names[0], pods))
        except PrometheusError:
            return
        intervals_s = [interval_of(entry) for entry in series]
        read_s = [interval_s for interval_s in intervals_s if interval_s is not None]
        if read_s:
            known.interval_s, known.interval_at_s = max(read_s), now_s
