"""The whole loop on a simulated cluster under load, while the engines' metrics misbehave."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fleetline.entrypoints.demo import scenario as script
from sim_cluster.api_client import APPLY_PATCH, ApiClient
from sim_cluster.launch import Cluster, cluster
from sim_cluster.nodes import ScrapeFault
from sim_cluster.resources import DEPLOYMENTS, SERVICES, Resource
from sim_cluster.traffic.arrivals import Arrival
from sim_cluster.traffic.router import Router

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

FLEETS = Resource("fleetline.dev", "v1alpha1", "servingfleets", "ServingFleet")
PLACE = (script.NAMESPACE, script.NAME)
RATE_PER_S = 25.0
VIEW_S = 25.0
"""Longer than the twenty turns before the first decrease. [s]"""

FAULT_S = 25.0
COMPLETIONS = ("vllm:request_success_total",)


@dataclass
class Live:
    """A cluster with a fleet, its operator and its gateway."""

    cluster: Cluster
    client: ApiClient
    router: Router

    async def replicas(self) -> int:
        return int((await self.client.get(DEPLOYMENTS, *PLACE))["spec"]["replicas"])

    async def status(self) -> dict[str, Any]:
        return (await self.client.get(FLEETS, *PLACE)).get("status") or {}

    async def ceiling_per_s(self) -> float:
        return float((await self.status())["replica"]["ceilingRequestsPerSecond"])

    async def reason(self) -> str:
        status = await self.status()
        found = {one["type"]: one["reason"] for one in status.get("conditions", ())}
        return str(found.get("MetricsAvailable", ""))

    def break_scrapes(self, fault: ScrapeFault) -> None:
        families = COMPLETIONS if fault is ScrapeFault.MISSING else ()
        for key in list(self.cluster.simulation.pool.replicas):
            self.cluster.simulation.faults.scrape(key, fault, families=families)

    async def lowest(self, during_s: float) -> int:
        """Fewest replicas that were asked for over a time."""
        ends_s, seen = time.monotonic() + during_s, []
        while time.monotonic() < ends_s:
            seen.append(await self.replicas())
            await asyncio.sleep(0.5)
        return min(seen)

    async def settled(self, for_s: float = 20.0, within_s: float = 100.0) -> int:
        """Wait until the count stays, and return it."""
        ends_s = since_s = time.monotonic()
        ends_s += within_s
        count = await self.replicas()
        while time.monotonic() - since_s < for_s:
            assert time.monotonic() < ends_s, "it does not come to rest"
            await asyncio.sleep(0.5)
            if (now := await self.replicas()) != count:
                count, since_s = now, time.monotonic()
        return count

    async def until(self, is_true: Callable[[int], bool], within_s: float = 60.0) -> None:
        ends_s = time.monotonic() + within_s
        while not is_true(await self.replicas()):
            assert time.monotonic() < ends_s, f"{await self.replicas()} replicas, in vain"
            await asyncio.sleep(0.5)


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    fleet = script.serving_fleet(script.Scenario())
    fleet["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    async with (
        cluster(
            nodes=[script.Scenario().nodes],
            operator=True,
            startup="1s",
            scrape_interval_s=0.5,
            operator_arguments=["--period", "1s"],
            report=lambda _: None,
        ) as here,
        ApiClient.from_kubeconfig(here.kubeconfig) as client,
    ):
        for resource, body in (
            (DEPLOYMENTS, script.deployment()),
            (SERVICES, script.service()),
            (FLEETS, fleet),
        ):
            whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
            await client.patch(
                resource, *PLACE, whole, content_type=APPLY_PATCH, query={"fieldManager": "test"}
            )
        router = await here.simulation.router(
            script.NAME, namespace=script.NAMESPACE, model_name=script.MODEL
        )
        while not router.endpoints.ready:
            await asyncio.sleep(0.2)
        router.begin(steady())
        yield Live(here, client, router)


def steady() -> list[Arrival]:
    """A quarter of an hour of requests, evenly."""
    return [
        Arrival(t_s=index / RATE_PER_S, prompt_tokens=250, output_tokens=80)
        for index in range(int(900 * RATE_PER_S))
    ]


@pytest.mark.parametrize(
    "fault",
    [
        ScrapeFault.FROZEN,
        ScrapeFault.SILENT,
        ScrapeFault.HANG,
        ScrapeFault.NAN,
        ScrapeFault.MISSING,
    ],
)
async def test_engines_whose_metrics_misbehave_lose_no_replica(
    live: Live, fault: ScrapeFault
) -> None:
    await live.until(lambda replicas: replicas > 1)
    await asyncio.sleep(VIEW_S)
    before = await live.settled()

    live.break_scrapes(fault)
    lowest = await live.lowest(FAULT_S)
    told = await live.reason()
    live.break_scrapes(ScrapeFault.NONE)
    healed = await live.lowest(15.0)
    ceiling_per_s = await live.ceiling_per_s()
    live.router.stop()
    await live.until(lambda replicas: replicas == 1, 120.0)

    assert before > 1
    assert lowest >= before
    assert healed * ceiling_per_s >= RATE_PER_S  # fewer only by what was learned meanwhile
    assert told in {"Frozen", "NoSeries", "Incomplete"}
