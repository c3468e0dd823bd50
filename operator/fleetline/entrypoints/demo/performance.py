"""The demo itself: bring a cluster up, apply a fleet, let the day pass, and watch."""

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.lengths import thinned
from fleetline.entrypoints.demo import scenario as script
from fleetline.entrypoints.demo.recorder import Moment, Recorder, read_status
from fleetline.entrypoints.demo.scenario import NAME, NAMESPACE, Scenario
from fleetline.entrypoints.demo.screen import View, phase, scaled
from fleetline.entrypoints.demo.summary import Summary, static_peak_replicas, summarize
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload
from sim_cluster.api_client import APPLY_PATCH, ApiClient
from sim_cluster.launch import Cluster
from sim_cluster.resources import DEPLOYMENTS, SERVICES, Resource
from sim_cluster.traffic import shapes
from sim_cluster.traffic.arrivals import draw_arrivals
from sim_cluster.traffic.router import Router
from sim_cluster.traffic.truth import RequestRecord, percentile_of

SERVING_FLEETS: Final = Resource("fleetline.dev", "v1alpha1", "servingfleets", "ServingFleet")
WARM_UP_S: Final = 20.0
"""Traffic before the day, so that lengths and start-ups are known. [s]"""
FIRST_PER_S: Final = 0.5
"""Traffic begins softly: before the first requests have completed nobody knows their lengths."""
LONGEST_SETTLE_S: Final = 60.0
STEADY_S: Final = 25.0
"""No change of replicas for this long is called steady. [s]"""
LOOK_BACK_S: Final = 6.0
"""Live latencies are of the requests finished within this time. [s]"""
PATIENCE_S: Final = 60.0
"""Nothing that was served in time takes longer than this to its last token. [s]"""
POLL_S: Final = 0.2
LONGEST_START_S: Final = 60.0
SAMPLES: Final = 2000
WRITTEN: Final = ("servingfleets", "servingfleets/status", "deployments", "deployments/scale")


@dataclass(slots=True)
class Performance:
    """One run of the demo on a cluster that is up."""

    cluster: Cluster
    client: ApiClient
    scenario: Scenario
    view: View
    recorder: Recorder = field(default_factory=Recorder)
    windows_met: list[bool] = field(default_factory=list)

    async def run(self) -> Summary:
        """Apply the fleet, let the day pass, wait for rest, and sum up."""
        await self._apply()
        router = await self._gateway()
        day = self.scenario.day
        trough = day.rate_per_s(0.0)
        first = shapes.Ramp(from_per_s=FIRST_PER_S, to_per_s=trough, duration_s=WARM_UP_S)
        rest_s = LONGEST_SETTLE_S + self.scenario.rest_s + STEADY_S
        shape = shapes.Sequence((first, day, constant(trough, rest_s)))
        router.begin(draw_arrivals(shape, self.scenario.lengths, seed=self.scenario.seed))
        await self._watch_until(router, 0.0, "traffic begins")
        await self._watch_until(router, day.duration_s, "the day begins")
        await self._settle(router)
        before = await self._patches()
        end_s = self._t_s(router) + self.scenario.rest_s
        await self._watch_until(router, end_s, "at rest: nothing may be written now")
        writes = await self._patches() - before
        router.stop()
        self._judge(router, patience_s=0.0)
        return summarize(
            self.recorder,
            windows_met=self.windows_met,
            writes_at_rest=writes,
            static_replicas=static_peak_replicas(self.scenario, *self._model()),
            requests=router.truth.arrivals,
        )

    async def _apply(self) -> None:
        objects: list[tuple[Resource, dict[str, Any]]] = [
            (DEPLOYMENTS, script.deployment()),
            (SERVICES, script.service()),
            (SERVING_FLEETS, script.serving_fleet(self.scenario)),
        ]
        for resource, body in objects:
            whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
            await self.client.patch(
                resource,
                NAMESPACE,
                NAME,
                whole,
                content_type=APPLY_PATCH,
                query={"fieldManager": "demo"},
            )
        phase(self.recorder, -WARM_UP_S, "applied Deployment, Service and ServingFleet", self.view)

    async def _gateway(self) -> Router:
        router = await self.cluster.simulation.router(
            NAME, namespace=NAMESPACE, model_name=script.MODEL
        )
        async with asyncio.timeout(LONGEST_START_S):
            while not router.endpoints.ready:  # noqa: ASYNC110 - an informer fills it
                await asyncio.sleep(POLL_S)
        return router

    def _t_s(self, router: Router) -> float:
        """Time since the day began. [s]"""
        return router.t_s - WARM_UP_S if router.truth.records else -WARM_UP_S

    async def _watch_until(self, router: Router, end_s: float, text: str) -> None:
        phase(self.recorder, self._t_s(router), text, self.view)
        while self._t_s(router) < end_s:
            await self._second(router)

    async def _settle(self, router: Router) -> None:
        phase(
            self.recorder, self._t_s(router), "the day is over, load stays at its trough", self.view
        )
        give_up_s = self._t_s(router) + LONGEST_SETTLE_S
        while self._t_s(router) < give_up_s:
            await self._second(router)
            recent = [
                moment.current_replicas
                for moment in self.recorder.moments
                if moment.t_s >= self._t_s(router) - STEADY_S
            ]
            begun_s = self.scenario.day.duration_s + STEADY_S
            if self._t_s(router) >= begun_s and len(set(recent)) == 1:
                return

    async def _second(self, router: Router) -> None:
        if self.cluster.operator is not None and self.cluster.operator.exit_code is not None:
            raise RuntimeError(f"the operator has ended: {self.cluster.operator.last_words()}")
        moment = await self._moment(router)
        scaled(self.recorder, moment, self.view)
        self._judge(router)
        await asyncio.sleep(1.0)

    async def _moment(self, router: Router) -> Moment:
        deployment = await self.client.get(DEPLOYMENTS, NAMESPACE, NAME)
        fleet = await self.client.get(SERVING_FLEETS, NAMESPACE, NAME)
        t_s = self._t_s(router)
        samples = router.truth.samples
        latest = samples[-1] if samples else None
        now_s = router.truth.origin_s + router.t_s

        def recent(metric: str) -> float | None:
            found = router.truth.recent_percentile_s(metric, 95, now_s=now_s, last_s=LOOK_BACK_S)
            return found if found is not None and math.isfinite(found) else None

        return Moment(
            t_s=t_s,
            arrival_rate_per_s=arrival_rate_per_s(router.truth.records, now_s),
            waiting_requests=(latest.waiting + latest.held) if latest else 0,
            running_requests=latest.running if latest else 0,
            first_token_p95_s=recent("TimeToFirstToken"),
            output_token_p95_s=recent("TimePerOutputToken"),
            pods=sum(key[0] == NAMESPACE for key in self.cluster.simulation.pods),
            ready_replicas=latest.ready_replicas if latest else 0,
            current_replicas=deployment["spec"]["replicas"],
            **read_status(fleet),
        )

    def _judge(self, router: Router, *, patience_s: float = PATIENCE_S) -> None:
        """
        Judge the windows of the day whose requests have finished.

        The truth about a request is complete with its last token; who is not finished long after
        the window has missed it.
        """
        width_s = self.scenario.window_s
        last = math.ceil(self.scenario.day.duration_s / width_s)
        while (judged := len(self.windows_met)) < last:
            records = in_window(
                router.truth.records, router.truth.origin_s + WARM_UP_S, judged, width_s
            )
            over_s = self._t_s(router) - (judged + 1) * width_s
            finished = all(math.isfinite(record.finished_s) for record in records)
            if over_s < 0 or (over_s < patience_s and not finished):
                return
            met = all(
                holds(records, str(one.metric), one.percentile, one.target_s)
                for one in self.scenario.objectives
            )
            self.windows_met.append(met)
            if not met:
                text = f"window {judged + 1} of {last} missed the objective"
                phase(self.recorder, self._t_s(router), text, self.view)

    async def _patches(self) -> int:
        """PATCHes on fleets and targets so far, counted by the API server."""
        memory = self.cluster.api.memory
        if memory is not None:
            counts = memory.request_counts
            return sum(counts.count(verb="patch", resource=resource) for resource in WRITTEN)
        return patches_in(await self.client.text("/metrics"))

    def _model(self) -> tuple[Replica, Workload]:
        """What the demo's planner would assume of a replica and its requests."""
        catalog = load_catalog()
        replica = Replica(
            architecture=catalog.architecture(script.MODEL),
            accelerator=catalog.accelerator(self.scenario.nodes.accelerator),
            max_sequences=script.SLOTS,
        )
        pairs = [
            (arrival.prompt_tokens, arrival.output_tokens)
            for arrival in draw_arrivals(
                constant(100.0, SAMPLES / 100), self.scenario.lengths, seed=self.scenario.seed
            )
        ]
        lengths = thinned(
            np.array([pair[0] for pair in pairs], float),
            np.array([pair[1] for pair in pairs], float),
        )
        return replica, Workload(lengths=lengths)


def constant(level_per_s: float, duration_s: float) -> shapes.Constant:
    """Return a steady load."""
    return shapes.Constant(level_per_s=level_per_s, duration_s=duration_s)


def arrival_rate_per_s(records: Sequence[RequestRecord], now_s: float) -> float:
    """Arrivals of the last few seconds, per second. [1/s]"""
    count = 0
    for record in reversed(records):
        if record.arrival_s < now_s - LOOK_BACK_S:
            break
        count += 1
    return count / LOOK_BACK_S


def in_window(
    records: Sequence[RequestRecord], origin_s: float, index: int, width_s: float
) -> list[RequestRecord]:
    """Requests that arrived in one window of the day."""
    begin_s = origin_s + index * width_s
    return [record for record in records if begin_s <= record.arrival_s < begin_s + width_s]


def latency_s(record: RequestRecord, metric: str) -> float | None:
    """One latency of one request; None if it has no such latency. [s]"""
    match metric:
        case "TimeToFirstToken":
            return record.time_to_first_token_s
        case "EndToEnd":
            return record.residence_time_s
        case _:
            return record.time_per_output_token_s


def holds(records: Sequence[RequestRecord], metric: str, percentile: int, target_s: float) -> bool:
    """Whether a percentile of the requests is inside its target; unfinished ones are not."""
    values = [value for record in records if (value := latency_s(record, metric)) is not None]
    found = percentile_of(values, percentile)
    return found is None or found <= target_s


def patches_in(metrics: str) -> int:
    """PATCHes on fleets and deployments in the metrics of a real API server."""
    total = 0.0
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{") or 'verb="PATCH"' not in line:
            continue
        if re.search(r'resource="(servingfleets|deployments)"', line) and (
            'resource="servingfleets"' in line or 'subresource="scale"' in line
        ):
            total += float(line.rsplit(" ", 1)[1])
    return round(total)
