"""What goes wrong in the life of a simulated pod, seen through the API alone."""

from typing import Any

import pytest

from sim_cluster.nodes import NodeSpec, simulate
from sim_cluster.traffic.arrivals import Arrival

NODES = [NodeSpec(accelerator="H100-SXM", count=2)]


def waiting_reason(status: dict[str, Any]) -> str:
    containers: list[dict[str, Any]] = status.get("containerStatuses") or [{}]
    (container,) = containers
    state: dict[str, Any] = container.get("state") or {}
    return str((state.get("waiting") or {}).get("reason", ""))


async def test_what_is_unfinished_at_the_end_of_the_grace_is_sent_elsewhere(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, NODES, startup="0s", speed=10) as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        await cluster.announce("chat-0")
        router = await sim.router("chat")
        router.begin([Arrival(0.0, 500, 100_000)])
        await until(lambda: router.in_flight == 1)

        await cluster.delete("chat-0", gracePeriodSeconds=2)
        await cluster.until_gone("chat-0")

        assert router.held == 1
        assert router.truth.records[0].reroutes == 1


async def test_requests_of_a_pod_that_vanishes_are_held_for_another(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        router = await sim.router("chat", selector={"app": "chat"})
        router.begin([Arrival(0.0, 500, 5000)])
        await until(lambda: router.in_flight == 1)

        await sim.faults.vanish(("default", "chat-0"))
        await until(lambda: router.held == 1)

    assert router.truth.records[0].reroutes == 1


async def test_a_crash_is_backed_off_and_started_again(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s", speed=40) as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        sim.faults.crash(("default", "chat-0"))
        await cluster.until_status(
            "chat-0", lambda status: waiting_reason(status) == "CrashLoopBackOff"
        )
        await cluster.until_ready("chat-0")

        status = await cluster.status("chat-0")
    assert status["containerStatuses"][0]["restartCount"] == 1
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


@pytest.mark.parametrize(
    ("failure", "reason"),
    [("image-pull", "ImagePullBackOff"), ("start", "CrashLoopBackOff")],
)
async def test_a_pod_fails_to_start_on_demand(
    cluster: Any, client: Any, failure: str, reason: str
) -> None:
    async with simulate(client, NODES, startup="0s"):
        await cluster.bind("chat-0", fail=failure)

        await cluster.until_status("chat-0", lambda status: waiting_reason(status) == reason)


async def test_a_model_that_does_not_fit_crashes_its_engine(cluster: Any, client: Any) -> None:
    async with simulate(client, NODES, startup="0s"):
        await cluster.bind("chat-0", model="meta-llama/Llama-3.1-70B-Instruct")  # 141 GB on 80

        await cluster.until_status(
            "chat-0", lambda status: waiting_reason(status) == "CrashLoopBackOff"
        )


async def test_a_failing_readiness_probe_leaves_the_engine_running(
    cluster: Any, client: Any
) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")

        sim.faults.fail_readiness(("default", "chat-0"))
        await cluster.until_status(
            "chat-0", lambda status: not status["containerStatuses"][0]["ready"]
        )
        running = "running" in (await cluster.status("chat-0"))["containerStatuses"][0]["state"]
        sim.faults.restore_readiness(("default", "chat-0"))
        await cluster.until_ready("chat-0")

    assert running


async def test_a_pod_that_was_replaced_unseen_starts_anew(
    cluster: Any, client: Any, until: Any
) -> None:
    async with simulate(client, NODES, startup="0s") as sim:
        await cluster.bind("chat-0")
        await cluster.until_ready("chat-0")
        served = sim.pool.replicas["default", "chat-0"]
        pod = await cluster.pod("chat-0")

        # after a pause of the watch, a list shows the second pod and never the first one's end
        replaced = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
        sim._informer._put(("default", "chat-0"), replaced)
        await until(lambda: sim.pods["default", "chat-0"].uid == "another")

        assert sim.pool.replicas["default", "chat-0"] is not served
