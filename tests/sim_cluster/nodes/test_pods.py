"""The life of a simulated pod, seen through the API alone."""

from typing import Any

import aiohttp
import pytest

from sim_cluster.nodes import NodeSpec, simulate
from sim_cluster.nodes.pod_status import Stage
from sim_cluster.traffic.arrivals import Arrival

NODES = [NodeSpec(accelerator="H100-SXM", count=2)]


async def test_a_bound_pod_starts_and_becomes_ready(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="100ms"):
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        status = await cluster.status("chat-0")

    (container,) = status["containerStatuses"]
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert container["ready"]
    assert container["restartCount"] == 0


async def test_a_pod_runs_without_being_ready_while_it_starts(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="1h"):
        await cluster.bind("chat-0")
        await cluster.until_status("chat-0", lambda status: status.get("phase") == "Running")

        status = await cluster.status("chat-0")

    assert not status["containerStatuses"][0]["ready"]
    assert "running" in status["containerStatuses"][0]["state"]


async def test_an_annotation_sets_the_start_up_time(cluster: Any, client: Any, until: Any) -> None:
    async with simulate(client, NODES, startup="1h") as sim:
        await cluster.bind("chat-0", startup="50ms")
        await cluster.bind("chat-1", startup="eventually")
        await cluster.until_ready("chat-0")
        await until(lambda: len(sim.pods) == 2)

        assert sim.pods["default", "chat-0"].startup_s == 0.05
        assert sim.pods["default", "chat-1"].startup_s == 3600


async def test_start_up_times_differ_and_repeat_with_the_seed(
    cluster: Any, client: Any, until: Any
) -> None:
    names = [f"chat-{number}" for number in range(8)]
    for name in names:
        await cluster.bind(name)

    drawn_s = []
    for _ in range(2):
        async with simulate(client, NODES, startup="lognormal(1h,0.5)", seed=3) as sim:
            await until(lambda sim=sim: len(sim.pods) == 8)
            drawn_s.append(sorted(pod.startup_s for pod in sim.pods.values()))

    assert drawn_s[0] == drawn_s[1]
    assert len(set(drawn_s[0])) == 8


async def test_pods_of_other_nodes_are_left_alone(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s"):
        await cluster.bind("theirs", node="somebody-elses")
        await cluster.bind("ours")
        await cluster.until_ready("ours")

        status = await cluster.status("theirs")

    assert "containerStatuses" not in status


async def test_a_ready_pod_answers_on_its_own_address(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s"), aiohttp.ClientSession() as session:
        await cluster.bind("chat-0", options=("--served-model-name", "chat"))
        await cluster.until_ready("chat-0")
        address = (await cluster.status("chat-0"))["podIP"]

        async with session.get(f"http://{address}:8000/metrics") as answer:
            text = await answer.text()
        async with session.get(f"http://{address}:8000/v1/models") as answer:
            models = await answer.json()

    assert 'vllm:num_requests_running{engine="0",model_name="chat"} 0.0' in text
    assert models["data"][0]["id"] == "chat"


async def test_a_starting_pod_refuses_connections(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="1h"), aiohttp.ClientSession() as session:
        await cluster.bind("chat-0")
        await cluster.until_status("chat-0", lambda status: "podIP" in status)
        address = (await cluster.status("chat-0"))["podIP"]

        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"http://{address}:8000/health")


async def test_requests_in_flight_finish_before_the_pod_goes(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, NODES, startup="0s", speed=5) as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        await cluster.announce("chat-0")
        router = await sim.router("chat")
        router.begin([Arrival(0.0, 500, 400)])
        await until(lambda: router.in_flight == 1)

        await cluster.delete("chat-0")
        await cluster.until_gone("chat-0")

        (record,) = router.truth.records
    assert record.finished_s < float("inf")
    assert record.reroutes == 0


async def test_a_leaving_pod_is_no_longer_ready(cluster: Any, client: Any, until: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        await cluster.announce("chat-0")
        router = await sim.router("chat")
        router.begin([Arrival(0.0, 500, 5000)])
        await until(lambda: router.in_flight == 1)

        await cluster.delete("chat-0")
        await cluster.until_status(
            "chat-0", lambda status: not status["containerStatuses"][0]["ready"]
        )

        assert sim.pods["default", "chat-0"].stage is Stage.DRAINING
        assert router.in_flight == 1


async def test_a_router_follows_pods_by_their_labels(cluster: Any, client: Any, until: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        router = await sim.router("chat", selector={"app": "chat"})
        await cluster.bind("chat-1")
        await until(lambda: len(router.endpoints.ready) == 2)

        await cluster.delete("chat-0")
        await until(lambda: router.endpoints.ready == (("default", "chat-1"),))

        other = await sim.router("code", selector={"app": "code"})
    assert other.endpoints.ready == ()


async def test_a_pod_of_the_same_name_is_another_pod(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        first = sim.pods["default", "chat-0"].uid

        await cluster.delete("chat-0", gracePeriodSeconds=0)
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        assert sim.pods["default", "chat-0"].uid != first
