"""Health and metrics over HTTP: what probes and Prometheus ask of the operator itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.settings import Settings
from fleetline.entrypoints.rounds import Rounds


class Health:
    """Whether every fleet was decided lately."""

    def __init__(self, rounds: Rounds, settings: Settings) -> None:
        """Judge `rounds`."""
        self._rounds = rounds
        self._silent_after_s = settings.silent_after_s
        self.stands_by = False
        """Whether another process holds the Lease: then there is nothing to decide."""

    def problem(self) -> str:
        """What is wrong, or an empty string."""
        if self.stands_by:
            return ""
        now_s = asyncio.get_running_loop().time()
        finished_s = self._rounds.finished_s
        if finished_s is None:
            return "the cluster was not read yet"
        if now_s - finished_s > self._silent_after_s:
            return f"the cluster was last read {now_s - finished_s:.0f} s ago"
        late = [
            uid
            for uid, at_s in self._rounds.decided_s.items()
            if now_s - at_s > self._silent_after_s
        ]
        return f"{len(late)} fleets were not decided for three periods" if late else ""


@contextlib.asynccontextmanager
async def serving(
    settings: Settings, health: Health, metrics: OwnMetrics
) -> AsyncIterator[tuple[int, int]]:
    """Serve `/healthz` and `/readyz` on one port, `/metrics` on the other; yields the ports."""

    async def healthz(_: web.Request) -> web.Response:
        problem = health.problem()
        return web.Response(status=503 if problem else 200, text=problem or "ok")

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=metrics.exposition(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    probes, scrapes = web.Application(), web.Application()
    probes.router.add_get("/healthz", healthz)
    probes.router.add_get("/readyz", healthz)
    scrapes.router.add_get("/metrics", show_metrics)
    async with contextlib.AsyncExitStack() as stack:
        health_port = await _listen(stack, probes, settings.bind_address, settings.health_port)
        metrics_port = await _listen(stack, scrapes, settings.bind_address, settings.metrics_port)
        yield health_port, metrics_port


async def _listen(
    stack: contextlib.AsyncExitStack, application: web.Application, address: str, port: int
) -> int:
    if port < 0:
        return port
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, address, port)
    await site.start()
    return int(runner.addresses[0][1])
