"""A Prometheus that answers the operator's queries from a table, or misbehaves as it is told."""

import asyncio
import email.utils
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
COMPLETIONS = "vllm:request_success_total"
MEANS = {
    "timeToFirstToken/vllm:time_to_first_token_seconds": 0.1,
    "interTokenLatency/vllm:inter_token_latency_seconds": 0.012,
    "endToEnd/vllm:e2e_request_latency_seconds": 3.0,
    "promptTokens/vllm:request_prompt_tokens": 1500.0,
    "outputTokens/vllm:request_generation_tokens": 250.0,
}
NAMES = (RUNNING, WAITING, COMPLETIONS, *(f"{tag.partition('/')[2]}_count" for tag in MEANS))

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Load:
    """What the pods of one fleet do."""

    namespace: str
    pods: Callable[[], list[str]]
    rate_per_s: float = 0.0
    waiting: float = 0.0
    model: str = "chat"
    frozen: list[str] = field(default_factory=list)
    """Pods that the question about standstill names."""


@dataclass
class FakePrometheus:
    """An HTTP server on a free loopback port."""

    loads: list[Load] = field(default_factory=list)
    fault: Fault | None = None
    warnings: list[str] = field(default_factory=list)
    values: Callable[[float], Any] = str
    """How a number is written: replaced to write nonsense."""
    clock_ahead_s: float = 0.0
    names: Sequence[str] = NAMES
    """Metric names that have series."""
    requests: int = 0
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/api/v1/query", self._answer)
        application.router.add_route("*", "/api/v1/label/__name__/values", self._names)
        await self._listen(application, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Refuse connections from now on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def start_again(self) -> None:
        """Listen again where it listened."""
        application = web.Application()
        application.router.add_route("*", "/api/v1/query", self._answer)
        application.router.add_route("*", "/api/v1/label/__name__/values", self._names)
        await self._listen(application, int(self.url.rpartition(":")[2]))

    async def _listen(self, application: web.Application, port: int) -> None:
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if self.fault is not None:
            return await self.fault(request)
        query = (await request.post()).get("query") or request.query["query"]
        date = email.utils.formatdate(time.time() + self.clock_ahead_s, usegmt=True)
        return web.json_response(self.body(str(query)), headers={"Date": date})

    async def _names(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if self.fault is not None:
            return await self.fault(request)
        assert "__name__=~" in request.query["match[]"]
        return web.json_response({"status": "success", "data": list(self.names)})

    def body(self, query: str) -> dict[str, Any]:
        """Answer of Prometheus' query API."""
        kind = "matrix" if query.endswith("[2m]") else "vector"
        result = self._samples() if kind == "matrix" else self._rows(query)
        body = {"status": "success", "data": {"resultType": kind, "result": result}}
        return {**body, "warnings": self.warnings} if self.warnings else body

    def _samples(self) -> list[Any]:
        now_s = time.time()
        return [{"metric": {}, "values": [[now_s - 0.05 * age, "1"] for age in range(9, 0, -1)]}]

    def _rows(self, query: str) -> list[Any]:
        if query.startswith("count by (__name__)"):
            return [self._row({"__name__": name}, 1.0) for name in self.names]
        tags = re.findall(r'"fleetline_source", "([^"]*)"', query)
        if '"standstill"' in query:
            return [
                self._row({"namespace": load.namespace, "pod": pod}, 1.0)
                for load in self.loads
                for pod in load.frozen
            ]
        if " unless " in query:
            return []
        return [row for load in self.loads for tag in tags for row in self._of(load, tag, query)]

    def _of(self, load: Load, tag: str, query: str) -> list[Any]:
        labels = {"namespace": load.namespace, "model_name": load.model, "fleetline_source": tag}
        pods = load.pods()
        if tag in (f"running/{RUNNING}/", f"waiting/{WAITING}/", f"completions/{COMPLETIONS}/"):
            total = {"r": load.rate_per_s * 3.0, "w": load.waiting, "c": load.rate_per_s}[tag[0]]
            share = 0.0 if " offset " in query else total / max(1, len(pods))
            return [self._row({**labels, "pod": pod}, share) for pod in pods]
        plain, _, part = tag.rpartition("/")
        if part == "age":
            return [self._row(labels, 0.5)]
        if plain in MEANS and part in ("sum", "count"):
            factor = MEANS[plain] if part == "sum" else 1.0
            return [self._row(labels, load.rate_per_s * factor)]
        return []

    def _row(self, labels: dict[str, str], value: float) -> dict[str, Any]:
        return {"metric": labels, "value": [time.time(), self.values(value)]}


def answering(status: int, body: str, **headers: str) -> Fault:
    """A fault: this status, body and headers."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers=headers)

    return answer


async def hang(_: web.Request) -> web.StreamResponse:
    """A fault: no answer at all."""
    await asyncio.sleep(60)
    return web.Response()


async def drip(request: web.Request) -> web.StreamResponse:
    """A fault: a byte now and then."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(600):
        await response.write(b" ")
        await asyncio.sleep(0.1)
    return response


async def flood(request: web.Request) -> web.StreamResponse:
    """A fault: more than anybody can hold."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(200):
        await response.write(b" " * 2**20)
    return response
