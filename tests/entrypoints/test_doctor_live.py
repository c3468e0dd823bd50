"""`explain` and `doctor` beside the real thing: simulated replicas, Prometheus and the operator."""

import asyncio
import json
import sys
from typing import Any

import pytest

from sim_cluster.api_client import ApiClient
from sim_cluster.launch import Cluster, cluster
from sim_cluster.resources import DEPLOYMENTS
from tests.entrypoints.world import FLEETS

pytestmark = pytest.mark.slow

LABELS = {"app": "chat"}
CONTAINER = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.11",
    "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
    },
}
FLEET: dict[str, Any] = {
    "apiVersion": "fleetline.dev/v1alpha1",
    "kind": "ServingFleet",
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "chat"},
        "objectives": [{"metric": "TimeToFirstToken", "target": "500ms"}],
        "maxReplicas": 4,
    },
}


async def fleetline(here: Cluster, *arguments: str) -> tuple[dict[str, Any], int | None]:
    """JSON that a command prints, and its exit code."""
    command = ["-m", "fleetline", *arguments, "--kubeconfig", str(here.kubeconfig), "-o", "json"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return json.loads(printed), process.returncode


async def until_measured(client: ApiClient) -> None:
    """Wait until the fleet is ready and its metrics are there."""
    wanted = {"Ready", "MetricsAvailable"}
    async with asyncio.timeout(60):
        while True:
            status = (await client.get(FLEETS, "default", "chat")).get("status") or {}
            true = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
            if wanted <= true:
                return
            await asyncio.sleep(0.5)


async def test_a_whole_cluster_is_explained_and_found_well() -> None:
    async with cluster(operator=True, operator_arguments=["--period", "1"]) as here:
        async with ApiClient.from_kubeconfig(here.kubeconfig) as client:
            await client.create(DEPLOYMENTS, DEPLOYMENT)
            await client.create(FLEETS, FLEET)
            await until_measured(client)

        told, explained = await fleetline(here, "explain", "chat")
        found, examined = await fleetline(
            here, "doctor", "--prometheus-url", str(here.prometheus_url)
        )
        strange = [
            await fleetline(
                here, "doctor", "--prometheus-url", str(here.prometheus_url), option, "strange"
            )
            for option in ("--namespace-label", "--pod-label")
        ]

    chain = {link["name"]: link["value"] for link in told["chain"]}
    assert (explained, examined) == (0, 0)
    assert chain["ceiling"] > 1
    assert chain["cost"] > 0
    assert found["failed"] == 0
    assert {"value_of": "accelerator.name", "source": "NodeLabels"}.items() <= next(
        one for one in told["discovered"] if one["value_of"] == "accelerator.name"
    ).items()
    for (doubtful, code), words in zip(
        strange, ('none with strange="default"', "have no label strange"), strict=True
    ):
        assert code == 1
        assert [
            words in one["says"] for one in doubtful["findings"] if one["check"] == "labels"
        ] == [True]
