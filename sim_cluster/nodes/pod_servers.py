"""
The HTTP servers of all pods: /metrics, /health and /v1/models on every pod's own address.

One small web application stands behind all of them; the local address of a connection tells which
pod was meant.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from sim_cluster.nodes.exposition import CONTENT_TYPE
from sim_cluster.nodes.faults import ScrapeFault

if TYPE_CHECKING:
    import socket
    from collections.abc import Coroutine

    from sim_cluster.informer import Key
    from sim_cluster.nodes.addresses import AddressBook
    from sim_cluster.nodes.live_replica import LiveReplica
    from sim_cluster.nodes.pod_status import SimulatedPod
    from sim_cluster.nodes.pool import ReplicaPool

_HANG_S: Final = 3600.0


class PodServers:
    """Listens where pods serve, as long as they do."""

    def __init__(self, pool: ReplicaPool, addresses: AddressBook) -> None:
        self._pool = pool
        self._addresses = addresses
        self._keys: dict[str, Key] = {}
        self._sites: dict[str, web.SockSite] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/v1/models", self._models),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def start(self) -> None:
        """Get ready to listen."""
        await self._runner.setup()

    async def stop(self) -> None:
        """Close everything."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        await self._runner.cleanup()
        self._addresses.close()

    def listens_on(self, address: str) -> bool:
        """Whether a pod has a listener of its own."""
        return address in self._sites

    def open(self, pod: SimulatedPod) -> None:
        """Answer on a pod's address from now on, if it has a socket."""
        self._keys[pod.ip] = pod.key
        bound = self._addresses.socket_of(pod.ip)
        if bound is not None and pod.ip not in self._sites:
            self._follow(pod.ip, self._listen(pod.ip, bound))

    def disconnect(self, pod: SimulatedPod) -> None:
        """Answer 503 on a pod's address: its engine is down."""
        self._keys.pop(pod.ip, None)

    def close(self, pod: SimulatedPod) -> None:
        """Stop listening on a pod's address and give it back."""
        self._follow(pod.ip, self._release(pod.ip, self._tasks.get(pod.ip)))

    def _follow(self, address: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[address] = task
        task.add_done_callback(lambda done: self._done(address, done))

    def _done(self, address: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(address) is task:
            del self._tasks[address]

    async def _listen(self, address: str, bound: socket.socket) -> None:
        site = web.SockSite(self._runner, bound)
        self._sites[address] = site
        await site.start()

    async def _release(self, address: str, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        site = self._sites.pop(address, None)
        if site is not None:
            await site.stop()
        self._addresses.give_back(address)

    def _replica(self, request: web.Request) -> LiveReplica:
        transport = request.transport
        address = transport.get_extra_info("sockname")[0] if transport else ""
        replica = self._pool.replicas.get(self._keys.get(address, ("", "")))
        if replica is None:
            raise web.HTTPServiceUnavailable(text="the engine is not up")
        return replica

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return await metrics_response(self._replica(request), request)

    async def _health(self, request: web.Request) -> web.Response:
        self._replica(request)
        return web.Response()

    async def _models(self, request: web.Request) -> web.Response:
        name = self._replica(request).spec.served_name
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"}]})


async def metrics_response(replica: LiveReplica, request: web.Request) -> web.StreamResponse:
    """Answer a scrape of one pod, or fail it as its fault says."""
    match replica.scrape.fault:
        case ScrapeFault.SILENT:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        case ScrapeFault.ERROR:
            return web.Response(status=500, text="the engine is dead")
        case ScrapeFault.HANG:
            await asyncio.sleep(_HANG_S)
    return exposition_response(replica.metrics_text())


def exposition_response(text: str | bytes) -> web.Response:
    """Answer with Prometheus text."""
    body = text if isinstance(text, bytes) else text.encode()
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
