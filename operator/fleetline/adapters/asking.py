"""
What Prometheus is asked about all fleets in a turn, everything at once.

Each answer is indexed as it comes, so that not all are held at once.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from fleetline.adapters import queries
from fleetline.adapters.arrivals import COMPLETED, GROWTH, SHORT, YOUNG
from fleetline.adapters.engine_metrics import Quantity
from fleetline.adapters.observations import Rows
from fleetline.adapters.pod_rows import GAUGES, Place
from fleetline.adapters.prometheus import Prometheus, together
from fleetline.adapters.sample_stream import Take
from fleetline.adapters.scope import Scope
from fleetline.adapters.standstill import standstill


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What the questions of a turn are about."""

    scope: Scope
    names: frozenset[str]
    """Metric names that exist: a question without series is not sent."""
    interval_s: float | None
    """Scrape interval, if it was read. [s]"""
    latencies: Collection[Quantity]
    """Those that have objectives."""
    gateways: Collection[tuple[str, str]]
    """Counters of arrivals that owners name, each with its label of the model."""
    young: Collection[str]
    """Names of pods that may not have existed a window ago."""
    suspects: Collection[str]
    """Names of pods that may stand still."""

    async def ask(self, prometheus: Prometheus, rows: Rows, note_still: Take) -> tuple[str, ...]:
        """Index the answers in `rows`, and those about standstill apart; returns the warnings."""
        asked = self._questions(rows, note_still)
        warnings = await together(
            *(prometheus.feed(promql, take) for promql, take in asked if promql)
        )
        return tuple(text for texts in warnings for text in texts)

    async def ask_short(
        self, prometheus: Prometheus, rows: Rows, suspects: Collection[Place]
    ) -> tuple[str, ...]:
        """Ask which of some pods have counters that cover a part of the window only."""
        if not suspects or self.interval_s is None:
            return ()
        scope = replace(self.scope, namespaces=tuple(sorted({place[0] for place in suspects})))
        pods = {pod for _, pod in suspects}
        promql = queries.short_completions(scope, self.names, pods, self.interval_s)
        if not promql:
            return ()
        return await prometheus.feed(promql, lambda found: rows.add_pods(found, SHORT, scope))

    def _questions(self, rows: Rows, note_still: Take) -> list[tuple[str, Take]]:
        """Each query, and what takes its answer."""
        scope, names = self.scope, self.names

        def pods(prefix: str) -> Take:
            return lambda found: rows.add_pods(found, prefix, scope)

        return [
            (queries.pod_gauges(scope, names), pods(GAUGES)),
            (queries.pod_completions(scope, names), pods(COMPLETED)),
            (queries.pod_growth(scope, names), pods(GROWTH)),
            (queries.young_completions(scope, names, self.young), pods(YOUNG)),
            (queries.model_means(scope, names), lambda found: rows.add_models(found, scope)),
            (
                queries.model_buckets(scope, names, sorted(self.latencies)),
                lambda found: rows.add_buckets(found, scope),
            ),
            (
                queries.gateway_rates(scope, self.gateways),
                lambda found: rows.add_gateways(found, scope),
            ),
            (standstill(scope, names, self.suspects), note_still),
        ]
