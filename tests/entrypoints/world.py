"""A cluster for the operator: the API in memory, a fake Prometheus, fleets and no controllers."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetline.adapters.settings import Settings
from fleetline.entrypoints.run import Operator
from sim_cluster.api.server import MemoryApi
from sim_cluster.api_client import ApiClient
from sim_cluster.definitions import applied_definitions
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, Resource
from tests.entrypoints.fake_prometheus import FakePrometheus, Load

FLEETS = Resource("fleetline.dev", "v1alpha1", "servingfleets", "ServingFleet")
PERIOD_S = 0.2
AGENT = "fleetline"


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.32",
        "args": ["serve", "meta-llama/Llama-3.1-8B-Instruct"],
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def fleet(name: str, **spec: Any) -> dict[str, Any]:
    brisk = {
        "stabilizationWindowSeconds": 1,
        "policies": [{"type": "Pods", "value": 50, "periodSeconds": 1}],
    }
    return {
        "apiVersion": "fleetline.dev/v1alpha1",
        "kind": "ServingFleet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": name},
            "accelerator": {"name": "H100-SXM"},
            "objectives": [{"metric": "TimePerOutputToken", "target": "50ms"}],
            "maxReplicas": 20,
            "behavior": {"scaleDown": brisk, "scaleUp": {"policies": brisk["policies"]}},
            **spec,
        },
    }


@dataclass
class World:
    """What a test sees and does."""

    api: MemoryApi
    client: ApiClient
    prometheus: FakePrometheus
    kubeconfig: Path
    settings: Settings
    pods: dict[str, list[str]] = field(default_factory=dict)
    _operators: list[asyncio.Task[None]] = field(default_factory=list)

    async def add_fleet(
        self, name: str, *, replicas: int = 2, rate_per_s: float = 0.0, **spec: Any
    ) -> Load:
        """Create a Deployment with ready pods, a fleet for it, and its load."""
        await self.client.create(DEPLOYMENTS, deployment(name, replicas))
        await self.add_pods(name, replicas)
        await self.client.create(FLEETS, fleet(name, **spec))
        load = Load("default", lambda: self.pods[name], rate_per_s=rate_per_s)
        self.prometheus.loads.append(load)
        return load

    async def add_pods(self, name: str, count: int) -> None:
        """Create pods that have been ready for long."""
        for _ in range(count):
            pod = f"{name}-abc-{len(self.pods.setdefault(name, []))}"
            await self.client.create(PODS, _pod(name, pod))
            await self.client.patch(PODS, "default", pod, {"status": READY}, subresource="status")
            self.pods[name].append(pod)

    async def set_replicas(self, name: str, replicas: int) -> None:
        """Change the count as a person or an apply would."""
        await self.client.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": replicas}})

    async def slip_in(self, name: str, spec: dict[str, Any]) -> None:
        """Break a spec past the schema, as an older CRD would have let it in."""
        definition = "servingfleets.fleetline.dev"
        whole = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, None, definition)
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
        await self.client.replace(CUSTOM_RESOURCE_DEFINITIONS, whole)
        await self.client.patch(FLEETS, "default", name, {"spec": spec})

    async def replicas(self, name: str) -> int:
        """What the Deployment asks for."""
        return int((await self.client.get(DEPLOYMENTS, "default", name))["spec"]["replicas"])

    async def status(self, name: str) -> dict[str, Any]:
        """Status of a fleet."""
        return dict((await self.client.get(FLEETS, "default", name)).get("status") or {})

    async def condition(self, name: str, kind: str) -> tuple[str, str]:
        """(status, reason) of a condition."""
        found = {
            one["type"]: (one["status"], one["reason"])
            for one in (await self.status(name)).get("conditions", ())
        }
        return found.get(kind, ("", ""))

    def writes(self, resource: str) -> int:
        """Requests of the operator that changed a resource."""
        return self.api.request_counts.writes(resource=resource, user_agent=AGENT)

    def reads(self) -> int:
        """Lists of fleets by the operator: one a round."""
        return self.api.request_counts.count(
            verb="list", resource="servingfleets", user_agent=AGENT
        )

    async def rounds(self, count: int) -> None:
        """Let the operator take some rounds."""
        target = self.reads() + count
        await self.until(lambda: self.reads() >= target)

    @contextlib.asynccontextmanager
    async def operator(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run the operator for the length of the block."""
        running = Operator(self.settings)
        task = asyncio.create_task(running.run())
        try:
            yield task
        finally:
            running.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, 20)

    @staticmethod
    async def until(check: Callable[[], Any], within_s: float = 30.0) -> None:
        """Wait for something to come true."""
        ends_s = time.monotonic() + within_s
        while True:
            result = check()
            if await result if asyncio.iscoroutine(result) else result:
                return
            assert time.monotonic() < ends_s, "it did not come true in time"
            await asyncio.sleep(0.05)


READY = {
    "phase": "Running",
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ],
}


def _pod(owner: str, name: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": owner, "pod-template-hash": "abc"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{owner}-abc",
                    "uid": "1",
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.32"}]},
    }


@contextlib.asynccontextmanager
async def a_world(folder: Path) -> AsyncIterator[World]:
    """Bring everything up but the operator."""
    async with MemoryApi() as api, FakePrometheus() as prometheus:
        kubeconfig = folder / "kubeconfig"
        api.write_kubeconfig(kubeconfig)
        settings = Settings(
            prometheus_url=prometheus.url,
            kubeconfig=kubeconfig,
            period_s=PERIOD_S,
            turn_timeout_s=1.5,
            request_timeout_s=1.0,
            prometheus_timeout_s=0.5,
            scrape_interval_s=0.05,
            metrics_port=0,
            health_port=0,
            bind_address="127.0.0.1",
            log_level="error",
            grace_s=4.0,
        )
        async with (
            ApiClient.from_kubeconfig(kubeconfig) as client,
            applied_definitions(client, remove_at_end=False),
        ):
            yield World(
                api=api,
                client=client,
                prometheus=prometheus,
                kubeconfig=kubeconfig,
                settings=settings,
            )
