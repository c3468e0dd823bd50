"""The process: it starts, is asked to end and ends, is killed anywhere and begins again."""

import asyncio
import contextlib
import signal
import sys
from dataclasses import replace

import aiohttp
import pytest

from fleetline.adapters.api_client import ApiClient as OperatorClient
from fleetline.adapters.api_failures import ApiError
from fleetline.entrypoints.run import Operator
from sim_cluster.processes import free_ports
from tests.entrypoints.world import World


class KilledError(BaseException):
    """What a SIGKILL is to the code that it strikes."""


async def is_raised(world: World) -> bool:
    return await world.replicas("chat") > 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "step", ["servingfleets", "scale GET", "scale PATCH", "status PATCH", "events POST"]
)
async def test_killed_at_any_step_the_next_process_comes_to_the_same_end(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    request = OperatorClient._request
    path, _, method = step.partition(" ")

    async def struck(self, verb, target, *rest):
        hit = path in target and verb == (method or "GET")
        if hit and when == "before":
            raise KilledError
        answer = await request(self, verb, target, *rest)
        if hit:
            raise KilledError
        return answer

    monkeypatch.setattr(OperatorClient, "_request", struck)
    killed = Operator(world.settings)
    task = asyncio.create_task(killed.run())
    await asyncio.sleep(2)
    killed.stop()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, KilledError):
        await task
    monkeypatch.undo()

    async with world.operator():
        await world.until(lambda: is_raised(world))
        await world.rounds(6)

    assert (await world.status("chat"))["desiredReplicas"] == await world.replicas("chat")
    assert world.writes("deployments/scale") <= 3
    assert (await world.condition("chat", "Ready"))[0] == "True"


async def test_a_restart_writes_nothing_and_lowers_nothing(world: World) -> None:
    await world.add_fleet("chat", replicas=1)
    async with world.operator():
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.rounds(4)
    await world.set_replicas("chat", 5)
    before = world.api.request_counts.writes(user_agent="fleetline")

    async with world.operator():
        await world.rounds(3)
        assert await world.replicas("chat") == 5

    assert world.writes("deployments/scale") == 0
    assert world.api.request_counts.writes(user_agent="fleetline") - before <= 3


async def test_health_fails_while_the_cluster_cannot_be_read(world: World) -> None:
    health, metrics = free_ports(2)
    world.settings = replace(world.settings, health_port=health, metrics_port=metrics)
    await world.add_fleet("chat", replicas=1)

    async with world.operator(), aiohttp.ClientSession() as session:

        async def answers(code: int) -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{health}/healthz") as answer:
                    return answer.status == code
            return False

        await world.until(lambda: answers(200))
        world.api.faults.fail(503, verb="list", resource="servingfleets")
        await world.until(lambda: answers(503))
        async with session.get(f"http://127.0.0.1:{metrics}/metrics") as shown:
            text = await shown.text()
        world.api.faults.clear()
        await world.until(lambda: answers(200))

    assert 'fleetline_current_replicas{fleet="chat",namespace="default"} 1.0' in text
    assert 'fleetline_turns_total{fleet="chat"' in text


async def test_the_program_ends_within_its_grace_when_it_is_told(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fleetline", "run", "--kubeconfig", str(world.kubeconfig)),
        *("--prometheus-url", world.prometheus.url, "--period", "500ms"),
        *("--metrics-port", "0", "--health-port", "0", "--bind-address", "127.0.0.1"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await world.until(lambda: is_raised(world), 60)
        process.send_signal(signal.SIGTERM)
        _, told = await asyncio.wait_for(process.communicate(), 25)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert process.returncode == 0
    assert b'"event": "ended"' in told


def test_an_api_error_says_what_was_asked() -> None:
    error = ApiError(409, "cannot PATCH /x: 409 conflict")

    assert (error.status, str(error)) == (409, "cannot PATCH /x: 409 conflict")
