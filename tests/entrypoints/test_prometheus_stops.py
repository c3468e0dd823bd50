"""The real Prometheus is stopped under the operator: why is seen, counts hold, all heals."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sim_cluster.api_client import ApiClient
from sim_cluster.launch import Cluster, cluster
from sim_cluster.nodes import NodeSpec
from sim_cluster.resources import DEPLOYMENTS
from tests.entrypoints.world import FLEETS, fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]
REPLICAS = 3
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {
        "replicas": REPLICAS,
        "selector": {"matchLabels": {"app": "chat"}},
        "template": {
            "metadata": {"labels": {"app": "chat"}},
            "spec": {
                "containers": [
                    {
                        "name": "vllm",
                        "image": "vllm/vllm-openai:v0.19.0",
                        "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
                        "ports": [{"name": "http", "containerPort": 8000}],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ]
            },
        },
    },
}


class Seen:
    """What a person would look at."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def replicas(self) -> int:
        return int((await self._client.get(DEPLOYMENTS, "default", "chat"))["spec"]["replicas"])

    async def metrics_available(self) -> tuple[str, str]:
        status = (await self._client.get(FLEETS, "default", "chat")).get("status") or {}
        found = {one["type"]: one for one in status.get("conditions", ())}
        one = found.get("MetricsAvailable", {})
        return one.get("status", ""), one.get("reason", "")

    async def reason(self) -> str:
        status = (await self._client.get(FLEETS, "default", "chat")).get("status") or {}
        return str((status.get("decision") or {}).get("reason", ""))


@pytest.fixture
async def here() -> AsyncIterator[Cluster]:
    nodes = [NodeSpec(accelerator="H100-SXM", count=1)]
    period = ["--period", "1s"]
    async with cluster(nodes=nodes, operator=True, startup="0.2s", operator_arguments=period) as up:
        yield up


async def until(check: Callable[[], Awaitable[bool]], within_s: float = 120.0) -> None:
    ends_s = time.monotonic() + within_s
    while not await check():
        assert time.monotonic() < ends_s, "it did not come true in time"
        await asyncio.sleep(0.5)


def prometheus_of(here: Cluster) -> int:
    """Return the process that was told of this cluster's configuration file."""
    told = f"--config.file={here.folder / 'prometheus.yaml'}".encode()
    return next(
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if told in path.read_bytes().split(b"\0")
    )


@contextmanager
def stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


async def test_a_stopped_prometheus_holds_the_count_says_why_and_heals(here: Cluster) -> None:
    async with ApiClient.from_kubeconfig(here.kubeconfig) as client:
        seen = Seen(client)
        await client.create(DEPLOYMENTS, DEPLOYMENT)
        await client.create(FLEETS, fleet("chat"))

        async def available() -> bool:
            return (await seen.metrics_available())[0] == "True"

        async def unreachable() -> bool:
            return await seen.metrics_available() == ("False", "PrometheusUnreachable")

        async def lowered() -> bool:
            return await seen.replicas() < REPLICAS

        await until(available)
        with stopped(prometheus_of(here)):
            await until(unreachable)
            await asyncio.sleep(10)
            held, reason = await seen.replicas(), await seen.reason()
        await until(available)
        await until(lowered)

        assert held == REPLICAS
        assert reason == "MetricsUnavailable"
        assert here.operator is not None
        assert here.operator.exit_code is None
