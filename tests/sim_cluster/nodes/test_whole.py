"""
The whole: a Deployment on simulated GPU nodes, traffic to its Service, and a real Prometheus.

What Prometheus says must agree with what the router knows, on our own API and on the real one.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from sim_cluster.api_client import ApiClient
from sim_cluster.launch import Cluster, cluster
from sim_cluster.nodes import NodeSpec
from sim_cluster.resources import DEPLOYMENTS, PODS, SERVICES
from sim_cluster.traffic.arrivals import draw_arrivals
from sim_cluster.traffic.lengths import LogNormalLengths
from sim_cluster.traffic.shapes import Constant

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None and shutil.which("apt-get") is None,
    reason="there is no Prometheus on PATH and no apt-get to fetch it with",
)

CHAT = {"app": "chat"}
RATE_PER_S = 12.0
WINDOW_S = 7


def deployment(replicas: int) -> dict[str, Any]:
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.32",
        "args": ["serve", "meta-llama/Llama-3.1-8B-Instruct", "--served-model-name", "chat"],
        "ports": [{"containerPort": 8000, "name": "http"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": CHAT},
            "template": {"metadata": {"labels": CHAT}, "spec": {"containers": [container]}},
        },
    }


SERVICE = {
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {"selector": CHAT, "ports": [{"port": 80, "targetPort": 8000, "name": "http"}]},
}


@pytest.fixture(params=["memory", pytest.param("controlplane", marks=pytest.mark.controlplane)])
async def here(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    nodes = [NodeSpec(accelerator="H100-SXM", count=1, accelerators_per_node=2)]
    async with cluster(
        request.param, nodes=nodes, startup="200ms", scrape_interval_s=0.5
    ) as running:
        yield running


@pytest.fixture
async def kubernetes(here: Cluster) -> AsyncIterator[ApiClient]:
    async with ApiClient.from_kubeconfig(here.kubeconfig) as client:
        await client.create(SERVICES, SERVICE)
        yield client


async def ask(here: Cluster, query: str) -> float | None:
    """Value of an instant query; None if there is no series."""
    url = f"{here.prometheus_url}/api/v1/query"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params={"query": query}) as answer,
    ):
        result = (await answer.json())["data"]["result"]
    return float(result[0]["value"][1]) if result else None


async def test_prometheus_agrees_with_the_truth(
    here: Cluster, kubernetes: ApiClient, until: Callable[[Callable[[], Any]], Any]
) -> None:
    await kubernetes.create(DEPLOYMENTS, deployment(2))
    router = await here.simulation.router("chat")
    await until(lambda: len(router.endpoints.ready) == 2)

    async def both_are_scraped() -> bool:
        return await ask(here, "count(vllm:num_requests_running)") == 2

    await until(both_are_scraped)
    lengths = LogNormalLengths(mean_prompt_tokens=400, mean_output_tokens=80)
    shape = Constant(level_per_s=RATE_PER_S, duration_s=WINDOW_S + 3)
    await router.replay(draw_arrivals(shape, lengths, seed=1))
    rate_per_s = await ask(here, f"sum(rate(vllm:request_success_total[{WINDOW_S}s]))")
    arrivals_per_s = await ask(here, f"sum(rate(llm_d_epp_request_total[{WINDOW_S}s]))")
    await router.drain()
    tokens = sum(record.output_tokens for record in router.truth.records)

    async def every_token_is_counted() -> bool:
        return await ask(here, "sum(vllm:generation_tokens_total)") == tokens

    await until(every_token_is_counted)
    recent = [one for one in router.truth.records if one.arrival_s > router.truth.origin_s + 3]
    assert rate_per_s == pytest.approx(len(recent) / WINDOW_S, rel=0.25)
    assert arrivals_per_s == pytest.approx(len(recent) / WINDOW_S, rel=0.25)
    assert {record.replica for record in router.truth.records} == {
        name for _, name in here.simulation.pods
    }


async def test_series_carry_the_labels_of_a_usual_cluster(
    here: Cluster, kubernetes: ApiClient, until: Callable[[Callable[[], Any]], Any]
) -> None:
    await kubernetes.create(DEPLOYMENTS, deployment(1))

    query = (
        'vllm:num_requests_waiting{namespace="default",pod=~"chat-.+",container="engine",'
        'node="sim-h100-sxm-0",model_name="chat",engine="0"}'
    )

    async def is_labelled() -> bool:
        return await ask(here, query) == 0

    await until(is_labelled)


async def test_pods_wait_when_the_accelerators_run_out(
    here: Cluster, kubernetes: ApiClient, until: Callable[[Callable[[], Any]], Any]
) -> None:
    await kubernetes.create(DEPLOYMENTS, deployment(5))

    async def phases() -> list[str]:
        pods, _ = await kubernetes.list(PODS, "default")
        return sorted(pod["status"].get("phase", "") for pod in pods)

    async def as_many_as_fit() -> bool:
        return await phases() == ["Pending"] * 3 + ["Running"] * 2

    await until(as_many_as_fit)
    await asyncio.sleep(0.5)
    assert await phases() == ["Pending"] * 3 + ["Running"] * 2


async def test_a_smaller_deployment_finishes_its_requests_first(
    here: Cluster, kubernetes: ApiClient, until: Callable[[Callable[[], Any]], Any]
) -> None:
    await kubernetes.create(DEPLOYMENTS, deployment(2))
    router = await here.simulation.router("chat")
    await until(lambda: len(router.endpoints.ready) == 2)
    lengths = LogNormalLengths(mean_prompt_tokens=400, mean_output_tokens=300)
    router.begin(draw_arrivals(Constant(level_per_s=15, duration_s=3), lengths, seed=2))
    await until(lambda: router.in_flight > 8)

    await kubernetes.patch(
        DEPLOYMENTS, "default", "chat", {"spec": {"replicas": 1}}, subresource="scale"
    )
    await router.drain()

    async def one_is_left() -> bool:
        pods, _ = await kubernetes.list(PODS, "default")
        return len(pods) == 1

    await until(one_is_left)
    assert router.truth.finished == router.truth.arrivals
    assert not any(record.reroutes for record in router.truth.records)
