"""
The control server: one address for what concerns all simulated pods.

/sd  /metrics (all pods)  /pods  /pods/NAMESPACE/NAME/metrics  /gateways/NAMESPACE/NAME/metrics
/traffic  POST /faults  POST /traffic
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sim_cluster.nodes.aggregate import Aggregate, text
from sim_cluster.nodes.pod_servers import exposition_response, metrics_response
from sim_cluster.traffic import wishes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sim_cluster.nodes.simulation import Simulation
    from sim_cluster.traffic.router import Router


@contextlib.asynccontextmanager
async def control_server(simulation: Simulation, *, port: int) -> AsyncIterator[str]:
    """Serve what concerns all pods on the loopback address; yield its URL."""
    app = web.Application()
    control = _Control(simulation)
    app.add_routes(
        [
            web.get("/sd", control.discovery),
            web.get("/metrics", control.metrics),
            web.get("/pods", control.pods),
            web.get("/pods/{namespace}/{name}/metrics", control.pod_metrics),
            web.get("/gateways/{namespace}/{name}/metrics", control.gateway_metrics),
            web.post("/faults", control.faults),
            web.get("/traffic", control.traffic),
            web.post("/traffic", control.send_traffic),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        taken = runner.addresses[0][1]
        yield f"http://127.0.0.1:{taken}"
    finally:
        await runner.cleanup()


class _Control:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._aggregate = Aggregate()

    async def discovery(self, _: web.Request) -> web.Response:
        return web.json_response(self._simulation.discovery())

    async def metrics(self, request: web.Request) -> web.Response:
        namespace = request.query.get("namespace")
        replicas = self._simulation.pool.replicas.values()
        if namespace is not None:
            return exposition_response(text(one for one in replicas if one.key[0] == namespace))
        return exposition_response(self._aggregate.content(replicas))

    async def pods(self, _: web.Request) -> web.Response:
        return web.json_response([_summary(self._simulation, key) for key in self._simulation.pods])

    async def pod_metrics(self, request: web.Request) -> web.StreamResponse:
        key = (request.match_info["namespace"], request.match_info["name"])
        replica = self._simulation.pool.replicas.get(key)
        if replica is None:
            raise web.HTTPServiceUnavailable(text="the engine is not up")
        return await metrics_response(replica, request)

    async def gateway_metrics(self, request: web.Request) -> web.Response:
        key = (request.match_info["namespace"], request.match_info["name"])
        router = self._simulation.routers.get(key)
        if router is None:
            raise web.HTTPNotFound(text="there is no such gateway")
        return exposition_response(router.metrics_text())

    async def faults(self, request: web.Request) -> web.Response:
        wish: dict[str, Any] = await request.json()
        try:
            await self._simulation.faults.apply(wish)
        except (KeyError, ValueError) as error:
            raise web.HTTPBadRequest(text=f"{error}") from error
        return web.json_response({"applied": wish})

    async def traffic(self, _: web.Request) -> web.Response:
        return web.json_response([_traffic(one) for one in self._simulation.routers.values()])

    async def send_traffic(self, request: web.Request) -> web.Response:
        wish: dict[str, Any] = await request.json()
        try:
            namespace, service = wishes.read_service(wish)
            arrivals = wishes.read_arrivals(wish)
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"{error}") from error
        router = self._simulation.routers.get((namespace, service))
        if router is None:
            router = await self._simulation.router(service, namespace=namespace)
        router.begin(arrivals)
        return web.json_response({"begun": wish})


def _traffic(router: Router) -> dict[str, Any]:
    def recent(metric: str) -> float | None:
        now_s = router.truth.origin_s + router.t_s
        return router.truth.recent_percentile_s(metric, 95, now_s=now_s, last_s=30.0)

    return {
        "namespace": router.key[0],
        "service": router.key[1],
        "arrivals": router.truth.arrivals,
        "finished": router.truth.finished,
        "in_flight": router.in_flight,
        "held": router.held,
        "time_to_first_token_p95_s": recent("TimeToFirstToken"),
        "time_per_output_token_p95_s": recent("TimePerOutputToken"),
    }


def _summary(simulation: Simulation, key: tuple[str, str]) -> dict[str, Any]:
    pod, replica = simulation.pods[key], simulation.pool.replicas.get(key)
    seen: dict[str, Any] = {
        "namespace": key[0],
        "name": key[1],
        "node": pod.node,
        "ip": pod.ip,
        "stage": pod.stage.value,
        "ready": pod.is_ready,
        "restarts": pod.restarts,
    }
    if replica is not None:
        seen |= {"running": replica.running, "waiting": replica.waiting, "kv": replica.kv_usage}
    return seen
