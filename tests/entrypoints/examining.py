"""`fleetline doctor` beside a test's world."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web
from typer.testing import CliRunner

from fleetline.entrypoints.cli import build
from tests.entrypoints.fake_prometheus import Fault
from tests.entrypoints.world import World

Found = dict[str, Any]
Change = Callable[[str, list[Any]], list[Any]]
"""A query and its result to another result."""


async def doctor(world: World, *arguments: str, prometheus: bool = True) -> tuple[list[Found], int]:
    """Findings and exit code."""
    everything = ["doctor", "--kubeconfig", str(world.kubeconfig), "--output", "json", *arguments]
    if prometheus:
        everything += ["--prometheus-url", world.prometheus.url]
    result = await asyncio.to_thread(
        lambda: CliRunner().invoke(build(), everything, catch_exceptions=False)
    )
    return json.loads(result.stdout)["findings"], result.exit_code


def bad(findings: list[Found]) -> list[Found]:
    """What is not ok."""
    return [one for one in findings if one["state"] != "ok"]


def of(findings: list[Found], check: str, subject: str = "") -> Found:
    """The one finding of a check about a subject that holds these words."""
    (found,) = (one for one in findings if one["check"] == check and subject in one["subject"])
    return found


def changed(world: World, change: Change, **headers: str) -> Fault:
    """A fault: the right answer, with its result changed."""

    def names(selector: str) -> dict[str, Any]:
        rows = [{"metric": {"__name__": name}} for name in world.prometheus.names]
        left = change(f"count by (__name__) ({selector})", rows)
        return {"status": "success", "data": [row["metric"]["__name__"] for row in left]}

    async def answer(request: web.Request) -> web.StreamResponse:
        if "match[]" in request.query:
            return web.json_response(names(request.query["match[]"]), headers=headers)
        query = str((await request.post()).get("query") or request.query["query"])
        body = world.prometheus.body(query)
        body["data"]["result"] = change(query, body["data"]["result"])
        return web.json_response(body, headers=headers)

    return answer
