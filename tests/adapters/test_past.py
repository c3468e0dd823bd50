"""Prometheus as it was: ranges asked for an hour at a time, looked up at a moment."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from fleetline.adapters.past import STEPS_AT_ONCE, Past, PastPods
from fleetline.adapters.prometheus import PrometheusError
from fleetline.adapters.scope import Scope
from fleetline.control.fleet import TargetReference

STEP_S = 15.0
PART_S = STEPS_AT_ONCE * STEP_S


@dataclass
class Asked:
    """Ranges that were asked for, and what is answered."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    series: dict[str, dict[float, str]] = field(default_factory=dict)
    """Value by time and pod."""

    async def answer(self, request: web.Request) -> web.Response:
        query = request.query
        start, end = float(query["start"]), float(query["end"])
        self.spans.append((start, end))
        result: list[dict[str, Any]] = [
            {
                "metric": {"namespace": "default", "pod": pod},
                "values": [[at, told] for at, told in values.items() if start <= at <= end],
            }
            for pod, values in self.series.items()
        ]
        data = {"resultType": "matrix", "result": result}
        return web.json_response({"status": "success", "data": data, "warnings": ["partial"]})


@contextlib.asynccontextmanager
async def a_past(asked: Asked) -> AsyncIterator[Past]:
    application = web.Application()
    application.router.add_route("*", "/api/v1/query_range", asked.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    past = Past(f"http://127.0.0.1:{runner.addresses[0][1]}", step_s=STEP_S, deadline_s=5.0)
    try:
        yield past
    finally:
        past.close()
        await runner.cleanup()


async def test_moments_of_an_hour_are_asked_for_once() -> None:
    asked = Asked(series={"a": {0.0: "1", STEP_S: "2", PART_S: "3"}})
    values = []
    async with a_past(asked) as past:
        for past.now_s in (0.0, STEP_S, 2 * STEP_S, PART_S):
            answer = await past.query("up")
            values.append([row.value for row in answer.rows])
            assert answer.warnings == ("partial",)

    assert values == [[1.0], [2.0], [], [3.0]]
    assert asked.spans == [(0.0, PART_S - STEP_S), (PART_S, 2 * PART_S - STEP_S)]


@pytest.mark.parametrize("told", ["NaN", "+Inf", "-Inf", "1e308"])
async def test_what_is_no_finite_number_is_not_there(told: str) -> None:
    async with a_past(Asked(series={"a": {0.0: told}})) as past:
        assert (await past.query("up")).rows == ()


async def test_a_past_that_is_away_is_an_error() -> None:
    past = Past("http://127.0.0.1:1", step_s=STEP_S, deadline_s=1.0)

    with pytest.raises(PrometheusError, match="no connection"):
        await past.query("up")
    past.close()


@pytest.mark.parametrize(
    ("kind", "own", "foreign"),
    [
        pytest.param("Deployment", "chat-5d9f-x2b4q", "chat-big-5d9f-x2b4q", id="Deployment"),
        pytest.param("StatefulSet", "chat-3", "chat-5d9f-x2b4q", id="StatefulSet"),
        pytest.param("LeaderWorkerSet", "chat-0-1", "chatter-0", id="another kind"),
    ],
)
async def test_pods_of_the_past_are_known_by_their_names(kind: str, own: str, foreign: str) -> None:
    asked = Asked(series={own: {0.0: "1", STEP_S: "1"}, foreign: {0.0: "1"}})
    target = TargetReference(kind=kind, name="chat")
    async with a_past(asked) as past:
        found = await PastPods(past, Scope(namespaces=("default",)), target).read()

    assert [pod.name for pod in found] == [own]


async def test_a_pod_is_as_old_as_its_series() -> None:
    asked = Asked(series={"chat-0": {0.0: "1", STEP_S: "1"}, "chat-1": {STEP_S: "1"}})
    target = TargetReference(kind="StatefulSet", name="chat")
    async with a_past(asked) as past:
        pods = PastPods(past, Scope(namespaces=("default",)), target)
        await pods.read()
        past.now_s = STEP_S
        found = {pod.name: pod.ready_since_s for pod in await pods.read()}

    assert found["chat-1"] == STEP_S
    assert found["chat-0"] is not None
    assert found["chat-0"] < 0.0


async def test_a_pod_is_no_younger_after_a_gap() -> None:
    asked = Asked(series={"chat-0": {0.0: "1", 2 * STEP_S: "1"}})
    target = TargetReference(kind="StatefulSet", name="chat")
    async with a_past(asked) as past:
        pods = PastPods(past, Scope(namespaces=("default",)), target)
        seen = []
        for past.now_s in (0.0, STEP_S, 2 * STEP_S):
            seen.append(await pods.read())

    assert seen[1] == ()
    assert seen[2] == seen[0]
