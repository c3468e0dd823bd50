"""The port `Metrics` made real: at most twelve queries a turn, whatever the number of fleets."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetline.adapters.arrivals import SHORT, Arrivals, Arrived, Inside, gateway_label
from fleetline.adapters.asking import Inquiry
from fleetline.adapters.engine_metrics import LATENCIES, Quantity
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.observations import PodView, Rows, length_distribution, view_pods
from fleetline.adapters.pod_rows import GAUGES, Model, Place
from fleetline.adapters.prometheus import Prometheus, PrometheusError
from fleetline.adapters.readings import Readings, pod_mean, pod_sum
from fleetline.adapters.scope import Scope, model_labels_of
from fleetline.adapters.seldom import Seldom
from fleetline.adapters.standstill import Standstill
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Observations, Pod

YOUNG_WINDOWS: Final = 1.5
LENGTHS: Final = "lengths/"
AT_ONCE: Final = 25
"""Fleets that are put together before others get a turn of the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where the numbers of a fleet came from; for its status."""

    sources: Mapping[str, str]
    series: Mapping[str, int]
    unknown: Mapping[str, str] = field(default_factory=dict)


class EngineMetrics:
    """Observes all fleets at once."""

    def __init__(
        self,
        prometheus: Prometheus,
        *,
        pods_of: Callable[[Fleet], tuple[Pod, ...]],
        period_s: float,
        scrape_interval_s: float,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        namespace_label: str = "namespace",
        pod_label: str = "pod",
    ) -> None:
        """
        Observe through `prometheus`.

        Parameters
        ----------
        pods_of
            Pods of a fleet in this turn's snapshot: series of others are not counted.
        period_s
            Time between turns. [s]
        scrape_interval_s
            To assume until it was read from Prometheus. [s]
        clock, ticks
            Unix time, and a clock that never goes back. [s]
        """
        self._prometheus = prometheus
        self._pods_of = pods_of
        self._seldom = Seldom(
            prometheus, period_s=period_s, scrape_interval_s=scrape_interval_s, clock=ticks
        )
        self._standstill = Standstill()
        self._arrivals = Arrivals()
        self._clock = clock
        self._labels = (namespace_label, pod_label)
        self._objects: dict[str, FleetObject] = {}
        self.evidence: dict[str, Evidence] = {}
        self.queries_in_turn = 0

    def look_at(self, objects: Sequence[FleetObject]) -> None:
        """Take the fleets of this turn with what their owners say about metrics."""
        self._objects = {one.fleet.key: one for one in objects}
        self.evidence = {k: v for k, v in self.evidence.items() if k in self._objects}
        self._arrivals.keep(self._objects)

    @property
    def window_s(self) -> float:
        """Window of rates. [s]"""
        return self._seldom.window_s

    async def observe(self, fleets: Sequence[Fleet]) -> Mapping[str, Observations]:
        """Observations by `Fleet.key`; PrometheusError if nothing at all can be had."""
        before = self._prometheus.queries
        if not fleets:
            return {}
        scope = self._scope(fleets)
        try:
            await self._seldom.read_names(scope)
            rows, warnings = await self._read(scope, fleets)
            await self._seldom.read_interval(scope, rows)
        finally:
            self.queries_in_turn = self._prometheus.queries - before
        shared = self._shared_models(rows, fleets)
        seen: dict[str, Observations] = {}
        for fleet in fleets:
            if fleet.key in self._objects:  # still there, after all the waiting
                seen[fleet.key] = self._observations(
                    fleet, rows, scope, shared, is_partial=bool(warnings)
                )
            if len(seen) % AT_ONCE == 0:
                await asyncio.sleep(0)  # a thousand fleets take long enough to let others in
        self._seldom.something_is_missing = any(
            not reading.is_known
            for one in seen.values()
            for reading in (one.running_requests, one.waiting_requests, one.arrival_rate_per_s)
        )
        return seen

    def _places(self, fleets: Sequence[Fleet]) -> Mapping[Place, int]:
        """Pods of all fleets, numbered."""
        places = ((fleet.namespace, pod.name) for fleet in fleets for pod in self._pods_of(fleet))
        return {place: number for number, place in enumerate(dict.fromkeys(places))}

    def _all_young(self, fleets: Sequence[Fleet], window_s: float) -> set[str]:
        """Names of all young pods."""
        return {name for one in fleets for name in self._young(self._pods_of(one), window_s)}

    def _scope(self, fleets: Sequence[Fleet]) -> Scope:
        namespace_label, pod_label = self._labels
        return Scope(
            namespaces=tuple(sorted({fleet.namespace for fleet in fleets})),
            model_labels=model_labels_of(self._objects.values()),
            window_s=self._seldom.window_s,
            namespace_label=namespace_label,
            pod_label=pod_label,
        )

    async def _read(self, scope: Scope, fleets: Sequence[Fleet]) -> tuple[Rows, tuple[str, ...]]:
        """Ask everything, and note what later turns are to know."""
        rows = Rows(places=self._places(fleets))
        inquiry = Inquiry(
            scope=scope,
            names=self._seldom.names,
            interval_s=self._seldom.interval_s,
            latencies={LATENCIES[one.metric] for fleet in fleets for one in fleet.objectives},
            gateways=[
                (one.metrics.arrivals_counter, gateway_label(one))
                for one in self._objects.values()
                if one.metrics.arrivals_counter is not None
            ],
            young=self._all_young(fleets, scope.window_s),
            suspects=self._standstill.suspects,
        )
        warnings = await inquiry.ask(
            self._prometheus,
            rows,
            lambda found: self._standstill.note(found, scope, now_s=self._clock()),
        )
        pods = {
            one.key: [(one.namespace, pod.name) for pod in self._pods_of(one)] for one in fleets
        }
        suspects = self._arrivals.suspects(rows, pods, window_s=scope.window_s)
        try:
            warnings += await inquiry.ask_short(self._prometheus, rows, suspects)
        except PrometheusError as error:
            warnings += (str(error),)  # the other answers stay; what is partial lowers nothing
            rows.by_pod.pop(SHORT, None)
        else:
            self._arrivals.note(rows, window_s=scope.window_s, now_s=self._clock())
        self._standstill.compare(rows.by_pod.get(GAUGES))
        lengths = await self._seldom.lengths(scope)
        rows.add_buckets(lengths.rows, scope, LENGTHS)
        return rows, warnings

    def _shared_models(self, rows: Rows, fleets: Sequence[Fleet]) -> frozenset[Model]:
        """Models that several fleets of a namespace serve: their latencies cannot be told apart."""
        seen: set[Model] = set()
        shared: set[Model] = set()
        for fleet in fleets:
            names = {pod.name for pod in self._pods_of(fleet)}
            models = {model for name in names for model in rows.models_at((fleet.namespace, name))}
            shared |= models & seen
            seen |= models
        return frozenset(shared)

    def _observations(
        self,
        fleet: Fleet,
        rows: Rows,
        scope: Scope,
        shared: frozenset[Model],
        *,
        is_partial: bool,
    ) -> Observations:
        one = self._objects[fleet.key]
        pods = [pod for pod in self._pods_of(fleet) if not pod.is_terminating]
        names = [pod.name for pod in pods]
        model_name = one.metrics.model_name
        gauges = view_pods(rows, fleet.namespace, names, GAUGES, model_name)
        models = sorted(gauges.models)
        apart = [] if shared & gauges.models else models
        reading = Readings(rows=rows, models=models, apart=apart, window_s=scope.window_s)
        young = self._young(pods, scope.window_s)
        frozen = self._standstill.among(fleet.namespace, names)
        inside = Inside(names=names, gauges=gauges, young=young, frozen=frozen)
        arrived = self._arrivals.of(one, rows, inside, window_s=scope.window_s)
        self.evidence[fleet.key] = _evidence(gauges, arrived)
        return Observations(
            arrival_rate_per_s=arrived.rate_per_s,
            running_requests=pod_sum(gauges, Quantity.RUNNING),
            waiting_requests=pod_sum(gauges, Quantity.WAITING),
            kv_cache_utilization=pod_mean(gauges, Quantity.KV_CACHE_UTILIZATION),
            prompt_tokens=reading.prompt_length(),
            output_tokens=reading.output_length(),
            prefix_hit_share=reading.hit_share(),
            time_to_first_token_s=reading.mean_s(Quantity.TIME_TO_FIRST_TOKEN),
            inter_token_latency_s=reading.mean_s(Quantity.INTER_TOKEN_LATENCY),
            end_to_end_s=reading.mean_s(Quantity.END_TO_END),
            latency_percentiles_s={
                str(objective): reading.percentile_s(objective) for objective in fleet.objectives
            },
            preemption_rate_per_s=reading.rate(Quantity.PREEMPTIONS),
            sample_age_s=reading.age_s(),
            reporting_replicas=arrived.whole,
            frozen_replicas=len(frozen),
            is_partial=is_partial,
            clock_skew_s=self._prometheus.clock_skew_s,
            lengths=length_distribution(rows, models, LENGTHS),
        )

    def _young(self, pods: Sequence[Pod], window_s: float) -> frozenset[str]:
        """Pods that became ready within the window, or a scrape or two before it."""
        since_s = self._clock() - YOUNG_WINDOWS * window_s
        return frozenset(
            pod.name for pod in pods if pod.ready_since_s is None or pod.ready_since_s > since_s
        )


def _evidence(gauges: PodView, arrived: Arrived) -> Evidence:
    sources = {str(quantity): name for quantity, name in gauges.sources.items()}
    if arrived.completions_name is not None:
        sources[str(Quantity.COMPLETIONS)] = arrived.completions_name
    rate = arrived.rate_per_s
    return Evidence(
        sources=sources,
        series={str(quantity): len(values) for quantity, values in gauges.values.items()},
        unknown={} if rate.is_known else {"arrivals": rate.unknown_because},
    )
