"""The demo itself: bring a cluster up, apply a fleet, let the day pass, and watch."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.lengths import thinned
from fleetline.entrypoints.demo import scenario as script
from fleetline.entrypoints.demo.gauges import read_gauges
from fleetline.entrypoints.demo.recorder import Moment, Recorder, read_decision
from fleetline.entrypoints.demo.scenario import NAME, NAMESPACE, Scenario
from fleetline.entrypoints.demo.screen import View, phase, scaled
from fleetline.entrypoints.demo.summary import Summary, static_peak_replicas, summarize
from fleetline.entrypoints.demo.windows import holds, in_window
from fleetline.entrypoints.demo.writes import changes, patches
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload
from sim_cluster.api_client import APPLY_PATCH, ApiClient
from sim_cluster.launch import Cluster
from sim_cluster.processes import StartError
from sim_cluster.resources import DEPLOYMENTS, SERVICES, Resource
from sim_cluster.traffic import shapes
from sim_cluster.traffic.arrivals import draw_arrivals
from sim_cluster.traffic.router import Router
from sim_cluster.traffic.truth import RequestRecord

SERVING_FLEETS: Final = Resource("fleetline.dev", "v1alpha1", "servingfleets", "ServingFleet")
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
        first = shapes.Ramp(
            from_per_s=self.scenario.first_per_s,
            to_per_s=trough,
            duration_s=self.scenario.warm_up_s,
        )
        rest_s = LONGEST_SETTLE_S + self.scenario.rest_s + STEADY_S
        shape = shapes.Sequence((first, day, constant(trough, rest_s)))
        router.begin(draw_arrivals(shape, self.scenario.lengths, seed=self.scenario.seed))
        await self._watch_until(router, 0.0, "traffic begins")
        await self._watch_until(router, day.duration_s, "the day begins")
        await self._settle(router)
        writes = await self._rest(router)
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
        text = "applied Deployment, Service and ServingFleet"
        phase(self.recorder, -self.scenario.warm_up_s, text, self.view)

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
        return (router.t_s if router.truth.records else 0.0) - self.scenario.warm_up_s

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

    async def _rest(self, router: Router) -> int:
        """Count what is written at rest, and say what it was."""
        before, status = await patches(self.cluster, self.client), await self._status()
        end_s = self._t_s(router) + self.scenario.rest_s
        await self._watch_until(router, end_s, "at rest: nothing may be written now")
        written = await patches(self.cluster, self.client) - before
        for name, count in written.items():
            text = f"{count} PATCH of {name} at rest"
            phase(self.recorder, self._t_s(router), text, self.view)
        if written:
            text = f"changed at rest: {changes(status, await self._status()) or 'nothing'}"
            phase(self.recorder, self._t_s(router), text, self.view)
        return written.total()

    async def _status(self) -> dict[str, Any]:
        fleet = await self.client.get(SERVING_FLEETS, NAMESPACE, NAME)
        return fleet.get("status") or {}

    async def _second(self, router: Router) -> None:
        if self.cluster.operator is not None and self.cluster.operator.exit_code is not None:
            raise StartError(f"the operator has ended: {self.cluster.operator.last_words()}")
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
            **await read_gauges(self.cluster.operator_metrics_url),
            **read_decision(fleet),
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
            begin_s = router.truth.origin_s + self.scenario.warm_up_s
            records = in_window(router.truth.records, begin_s, judged, width_s)
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
