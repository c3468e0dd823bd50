"""`fleetline explain` beside a live operator: what the status says, with units and hints."""

import ast
import asyncio
import inspect
import json
import re
import sys
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fleetline.adapters import conditions
from fleetline.entrypoints.cli import build
from fleetline.entrypoints.condition_reasons import ASPECTS, HINTS
from fleetline.policy.decision import Reason
from sim_cluster.resources import DEPLOYMENTS
from tests.entrypoints.fake_prometheus import answering
from tests.entrypoints.world import FLEETS, World, fleet

DIMENSIONLESS = {
    *("prefix hits", "dispersion", "limit", "prefill utilization", "loop gain", "amplification"),
    *("utilization", "ready replicas", "recommended replicas", "desired replicas"),
    *("calibration Step", "calibration Sequence", "calibration Prefill"),
}


async def explain(world: World, *arguments: str) -> Result:
    everything = ["explain", *arguments, "--kubeconfig", str(world.kubeconfig)]
    return await asyncio.to_thread(lambda: CliRunner().invoke(build(), everything))


async def told(world: World, name: str = "chat") -> tuple[dict[str, Any], int]:
    result = await explain(world, name, "--output", "json")
    return json.loads(result.stdout), result.exit_code


def links(explanation: dict[str, Any]) -> dict[str, Any]:
    return {link["name"]: link["value"] for link in explanation["chain"]}


async def until_condition(world: World, kind: str, status: str) -> None:
    async def holds() -> bool:
        return (await world.condition("chat", kind))[0] == status

    await world.until(holds)


async def test_the_chain_holds_the_numbers_of_the_status(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)

    async with world.operator():
        await until_condition(world, "MetricsAvailable", "True")
    explanation, code = await told(world)

    status = await world.status("chat")
    chain = links(explanation)
    assert code == 0
    assert chain["ceiling"] == float(status["replica"]["ceilingRequestsPerSecond"])
    assert chain["limit"] == status["replica"]["limit"]
    assert chain["in flight at it"] == pytest.approx(chain["ceiling"] * chain["residence time"])
    assert chain["arrival rate"] == float(status["workload"]["arrivalRequestsPerSecond"])
    assert explanation["decision"][-1]["because"] == status["decision"]["because"]
    assert {"value_of": "accelerator.name", "value": "H100-SXM"}.items() <= next(
        one for one in explanation["discovered"] if one["value_of"] == "accelerator.name"
    ).items()


async def test_the_forecast_is_what_the_decision_was_made_for(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)

    async with world.operator():
        await until_condition(world, "MetricsAvailable", "True")
        await world.rounds(10)
        explanation, _ = await told(world)

    demand = explanation["decision"][0]["because"]
    (ready_for,) = re.findall(r"([\d.]+) to be ready for", demand)
    assert links(explanation)["forecast"] == pytest.approx(float(ready_for), rel=0.01)
    assert links(explanation)["forecast"] >= 0.99 * links(explanation)["arrival rate"]


async def test_every_quantity_says_its_unit(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)

    async with world.operator():
        await until_condition(world, "MetricsAvailable", "True")
    explanation, _ = await told(world)

    bare = {link["name"] for link in explanation["chain"] if not link["unit"]}
    assert bare <= DIMENSIONLESS
    assert len(explanation["chain"]) > 15


async def test_the_table_reads_from_arrivals_to_cost(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)

    async with world.operator():
        await until_condition(world, "MetricsAvailable", "True")
    shown = (await explain(world, "chat")).stdout

    order = [shown.index(word) for word in ("arrival rate", "forecast", "ceiling", "loop gain")]
    assert order == sorted(order)
    assert "L = lambda W" in shown
    assert "USD/h" in shown


async def test_a_missing_target_is_a_negative_finding_with_a_hint(world: World) -> None:
    await world.client.create(FLEETS, fleet("chat"))

    async with world.operator():
        await until_condition(world, "Ready", "False")
    explanation, code = await told(world)

    ready = explanation["conditions"][0]
    assert code == 1
    assert (ready["condition"], ready["reason"]) == ("Ready", Reason.TARGET_NOT_FOUND)
    assert "scaleTargetRef" in ready["hint"]


async def test_metrics_that_are_not_there_are_a_negative_finding(world: World) -> None:
    await world.add_fleet("chat", replicas=2)
    world.prometheus.fault = answering(403, "no")

    async with world.operator():
        await until_condition(world, "MetricsAvailable", "False")
    explanation, code = await told(world)

    assert code == 1
    assert explanation["ready"] == "True"
    assert links(explanation)["arrival rate"] is None
    assert "token" in next(
        one["hint"] for one in explanation["conditions"] if one["reason"] == "Unauthorized"
    )


async def test_a_fleet_that_nobody_looked_at_says_so(world: World) -> None:
    await world.add_fleet("chat")

    result = await explain(world, "chat")

    assert result.exit_code == 1
    assert "no operator has looked at this fleet yet" in result.stdout


async def test_a_spec_that_changed_since_is_said(world: World) -> None:
    await world.add_fleet("chat", replicas=2)
    async with world.operator():
        await until_condition(world, "Ready", "True")

    await world.client.patch(FLEETS, "default", "chat", {"spec": {"maxReplicas": 7}})

    assert "the spec changed since" in (await explain(world, "chat")).stdout


async def test_a_wrong_name_lists_those_that_exist_and_is_wrong_use(world: World) -> None:
    await world.client.create(FLEETS, fleet("chat"))
    await world.client.create(FLEETS, fleet("code"))
    command = ["-m", "fleetline", "explain", "chut", "--kubeconfig", str(world.kubeconfig)]

    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()

    assert process.returncode == 2
    assert b"NAME must be a ServingFleet of namespace default (chat, code), got 'chut'" in errors


async def test_a_fleet_of_another_namespace_is_pointed_to(world: World) -> None:
    await world.client.create(FLEETS, fleet("chat"))

    result = await explain(world, "chat", "--namespace", "kube-system")

    assert "namespace default has one" in str(result.exception)


async def test_nothing_is_written(world: World) -> None:
    await world.add_fleet("chat")
    before = world.api.request_counts.writes(user_agent="fleetline")

    await explain(world, "chat")

    assert world.api.request_counts.writes(user_agent="fleetline") == before
    assert (await world.client.get(DEPLOYMENTS, "default", "chat"))["spec"]["replicas"] == 2


def reasons_in_code() -> set[str]:
    """Reasons that `adapters/conditions.py` writes out as words."""
    tree = ast.parse(inspect.getsource(conditions))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Condition"
    ]
    third = [call.args[2] for call in calls if len(call.args) > 2]
    return {str(one.value) for one in third if isinstance(one, ast.Constant)}


def test_every_reason_of_a_condition_is_described() -> None:
    described = {reason for one in ASPECTS.values() for reason in (*one.good, *one.bad)}

    assert reasons_in_code() - {"NotYetKnown"} <= described
    assert described >= conditions.NOT_READY | conditions.NOT_ABLE | conditions.LIMITED
    assert tuple(ASPECTS) == conditions.TYPES


def test_every_reason_that_needs_attention_has_a_hint() -> None:
    assert {str(reason) for one in ASPECTS.values() for reason in one.bad} <= set(map(str, HINTS))


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_of_a_decision_says_what_it_means(reason: Reason) -> None:
    assert reason.description
    assert not reason.description.endswith(".")
