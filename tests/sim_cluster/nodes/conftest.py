"""A fresh API for each test, and the objects that tests put into it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from sim_cluster.api.server import MemoryApi
from sim_cluster.api_client import ApiClient, Object
from sim_cluster.resources import ENDPOINT_SLICES, NODES, PODS

NODE = "sim-h100-sxm-0"
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
_POLL_S = 0.01
_PATIENCE_S = 20.0


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ApiClient]:
    async with MemoryApi(port=0) as api:
        kubeconfig = tmp_path / "kubeconfig"
        api.write_kubeconfig(kubeconfig)
        async with ApiClient.from_kubeconfig(kubeconfig) as client:
            yield client


class Cluster:
    """What tests do to the cluster, in few words."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    async def bind(
        self,
        name: str,
        *,
        model: str = MODEL,
        node: str = NODE,
        options: tuple[str, ...] = (),
        **annotations: str,
    ) -> None:
        """Create a pod that is bound to a node, as a scheduler leaves it."""
        metadata = {
            "name": name,
            "namespace": "default",
            "labels": {"app": "chat"},
            "annotations": {f"sim.fleetline.dev/{key}": text for key, text in annotations.items()},
        }
        container = {
            "name": "engine",
            "image": "vllm/vllm-openai:v0.32",
            "args": ["serve", model, *options],
            "ports": [{"containerPort": 8000, "name": "http"}],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 30}
        await self.client.create(PODS, {"metadata": metadata, "spec": spec})

    async def announce(self, *pods: str) -> None:
        """Put pods behind the Service "chat", as the EndpointSlice controller would."""
        endpoints = [
            {
                "addresses": [f"{pod}.default.pod.cluster.local"],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": pod},
            }
            for pod in pods
        ]
        labels = {"kubernetes.io/service-name": "chat"}
        body: Object = {
            "metadata": {"name": "chat-1", "namespace": "default", "labels": labels},
            "addressType": "FQDN",
            "endpoints": endpoints,
        }
        await self.client.create(ENDPOINT_SLICES, body)

    async def pod(self, name: str) -> Object | None:
        return await self.client.find(PODS, "default", name)

    async def status(self, name: str) -> dict[str, Any]:
        pod = await self.pod(name)
        assert pod is not None
        return dict(pod.get("status") or {})

    async def node(self, name: str = NODE) -> Object:
        return await self.client.get(NODES, None, name)

    async def delete(self, name: str, **options: Any) -> None:
        await self.client.delete(PODS, "default", name, options=options or None)

    async def until_status(self, name: str, what: Callable[[dict[str, Any]], bool]) -> None:
        async def holds() -> bool:
            pod = await self.pod(name)
            return pod is not None and what(pod.get("status") or {})

        await until(holds)

    async def until_ready(self, *names: str) -> None:
        for name in names:
            await self.until_status(name, is_ready)

    async def until_gone(self, name: str) -> None:
        async def gone() -> bool:
            return await self.pod(name) is None

        await until(gone)


@pytest.fixture
def cluster(client: ApiClient) -> Cluster:
    return Cluster(client)


def is_ready(status: dict[str, Any]) -> bool:
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return conditions.get("Ready") == "True"


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition (plain or async) holds."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            value = condition()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return
            await asyncio.sleep(_POLL_S)


@pytest.fixture(name="until")
def until_fixture() -> Callable[[Callable[[], Any]], Any]:
    return until
