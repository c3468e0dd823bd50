"""What Prometheus and curious users reach over HTTP."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from sim_cluster.nodes import NodeSpec, ScrapeFault, simulate
from sim_cluster.traffic.arrivals import Arrival

NODES = [NodeSpec(accelerator="H100-SXM", count=1)]
CHAT = ("default", "chat-0")


async def get(url: str, *, patience_s: float = 5.0) -> tuple[int, str]:
    timeout = aiohttp.ClientTimeout(total=patience_s)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def targets_of(url: str) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/sd") as answer:
        return list(await answer.json())


async def test_discovery_names_a_pod_as_kubernetes_discovery_would(
    cluster: Any, client: Any
) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        (target,) = await targets_of(sim.url)

    labels = target["labels"]
    assert target["targets"] == [f"{labels['__meta_kubernetes_pod_ip']}:8000"]
    assert labels["__meta_kubernetes_namespace"] == "default"
    assert labels["__meta_kubernetes_pod_name"] == "chat-0"
    assert labels["__meta_kubernetes_pod_ready"] == "true"
    assert labels["__meta_kubernetes_pod_label_app"] == "chat"
    assert labels["__meta_kubernetes_pod_container_port_name"] == "http"
    assert labels["__meta_kubernetes_pod_node_name"] == "sim-h100-sxm-0"


async def test_a_pod_without_a_listener_is_scraped_through_the_control_server(
    cluster: Any, client: Any
) -> None:
    async with simulate(client, NODES, startup="0s", most_listeners=0) as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        (target,) = await targets_of(sim.url)

        path = target["labels"]["__metrics_path__"]
        status, text = await get(f"http://{target['targets'][0]}{path}")

    assert status == 200
    assert "vllm:num_requests_running" in text


async def test_a_starting_pod_is_not_discovered(cluster: Any, client: Any, until: Any) -> None:
    async with simulate(client, NODES, startup="1h") as sim:
        await cluster.bind("chat-0")
        await until(lambda: CHAT in sim.pods)

        assert await targets_of(sim.url) == []


async def test_a_router_is_discovered_with_its_own_metrics(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, NODES) as sim:
        router = await sim.router("chat", model_name="llama")
        router.begin([Arrival(0.0, 100, 10)])
        await until(lambda: router.held == 1)
        (target,) = await targets_of(sim.url)

        path = target["labels"]["__metrics_path__"]
        _, text = await get(f"http://{target['targets'][0]}{path}")

    (line,) = [line for line in text.splitlines() if line.startswith("llm_d_epp_request_total{")]
    assert 'model_name="llama"' in line
    assert line.endswith(" 1.0")


async def test_all_pods_share_one_answer_with_their_labels(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        for name in ("chat-0", "chat-1"):
            await cluster.bind(name)
        await cluster.until_ready("chat-0", "chat-1")

        _, text = await get(f"{sim.url}/metrics")

    running = [line for line in text.splitlines() if line.startswith("vllm:num_requests_running{")]
    assert len(running) == 2
    assert all('namespace="default"' in line for line in running)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        pytest.param(ScrapeFault.ERROR, 500, id="an error"),
        pytest.param(ScrapeFault.SILENT, aiohttp.ServerDisconnectedError, id="a dead connection"),
        pytest.param(ScrapeFault.HANG, asyncio.TimeoutError, id="an answer that never comes"),
        pytest.param(ScrapeFault.NAN, 200, id="not a number"),
    ],
)
async def test_a_scrape_fails_as_it_was_told_to(
    cluster: Any, client: Any, fault: ScrapeFault, outcome: int | type[Exception]
) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        address = (await cluster.status("chat-0"))["podIP"]
        sim.faults.scrape(CHAT, fault)

        try:
            seen: int | type[BaseException] = (
                await get(f"http://{address}:8000/metrics", patience_s=0.3)
            )[0]
        except (aiohttp.ClientError, TimeoutError) as error:
            seen = type(error)

    is_error = isinstance(seen, type) and isinstance(outcome, type) and issubclass(seen, outcome)
    assert seen == outcome or is_error


async def post(url: str, body: dict[str, Any]) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return answer.status


async def test_faults_are_made_over_http(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        wish = {"fault": "fail-readiness", "namespace": "default", "pod": "chat-0"}
        status = await post(f"{sim.url}/faults", wish)
        await cluster.until_status(
            "chat-0", lambda status: not status["containerStatuses"][0]["ready"]
        )

    assert status == 200


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"fault": "earthquake", "namespace": "default", "pod": "x"}, id="unknown"),
        pytest.param({"fault": "crash", "namespace": "default", "pod": "nobody"}, id="no pod"),
        pytest.param({"fault": "crash"}, id="no name"),
    ],
)
async def test_a_fault_that_cannot_be_is_refused(client: Any, wish: dict[str, Any]) -> None:
    async with simulate(client, NODES) as sim:
        assert await post(f"{sim.url}/faults", wish) == 400


async def test_nothing_is_left_when_the_simulation_ends(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        address = (await cluster.status("chat-0"))["podIP"]
        await sim.router("chat")
        url = sim.url

    assert {"Informer.run", "Kubelet.work", "NodeKeeper.renew", "ReplicaPool.run"}.isdisjoint(
        getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()
    )
    for port in (f"{address}:8000", url.removeprefix("http://")):
        with pytest.raises(aiohttp.ClientConnectionError):
            await get(f"http://{port}/metrics")


async def test_traffic_is_started_and_seen_over_http(cluster: Any, client: Any, until: Any) -> None:
    async with simulate(client, NODES, startup="0s", speed=10) as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        await cluster.announce("chat-0")
        wish = {"service": "chat", "shape": "constant", "level_per_s": 5, "duration_s": 10}

        status = await post(f"{sim.url}/traffic", wish)
        refused = await post(f"{sim.url}/traffic", {"service": "chat", "shape": "sawtooth"})
        router = sim.routers["default", "chat"]
        await router.drain()
        _, text = await get(f"{sim.url}/traffic")

    (seen,) = json.loads(text)
    assert (status, refused) == (200, 400)
    assert seen["arrivals"] == seen["finished"] > 20
