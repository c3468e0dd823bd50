"""`fleetline doctor` about Prometheus: which series there are, whose, and how fresh."""

import time
from email.utils import formatdate
from typing import Any

import pytest

from tests.entrypoints.examining import Change, bad, changed, doctor, of
from tests.entrypoints.fake_prometheus import answering
from tests.entrypoints.world import World

EVERYWHERE = '__name__!=""'


def without_names(part: str) -> Change:
    def change(query: str, result: list[Any]) -> list[Any]:
        if not query.startswith("count by (__name__)"):
            return result
        return [row for row in result if part not in row["metric"]["__name__"]]

    return change


def other_namespace(query: str, result: list[Any]) -> list[Any]:
    return result if EVERYWHERE in query else []


def no_pod_label(query: str, result: list[Any]) -> list[Any]:
    for row in result:
        row["metric"].pop("pod", None)
    return result


def scraped_seldom(query: str, result: list[Any]) -> list[Any]:
    if not query.endswith("[2m]"):
        return result
    now_s = time.time()
    return [{"metric": {}, "values": [[now_s - age_s, "1"] for age_s in (90, 60, 30)]}]


def scraped_once(query: str, result: list[Any]) -> list[Any]:
    return [{"metric": {}, "values": [[time.time(), "1"]]}] if query.endswith("[2m]") else result


async def test_an_unreachable_prometheus_fails(world: World) -> None:
    await world.add_fleet("chat")
    await world.prometheus.stop()

    findings, code = await doctor(world)

    assert code == 1
    assert "--prometheus-url" in of(findings, "prometheus")["mend"]


async def test_a_refusing_prometheus_points_to_the_token(world: World) -> None:
    await world.add_fleet("chat")
    world.prometheus.fault = answering(403, "secret words of a stranger")

    findings, code = await doctor(world)

    found = of(findings, "prometheus")
    assert code == 1
    assert "token" in found["mend"]
    assert "secret" not in found["says"]


@pytest.mark.parametrize(
    ("off_s", "state"),
    [
        pytest.param(0.0, "ok", id="in step"),
        pytest.param(20.0, "warning", id="suspect"),
        pytest.param(600.0, "failed", id="ten minutes off"),
    ],
)
async def test_the_clock_is_compared(world: World, off_s: float, state: str) -> None:
    await world.add_fleet("chat")
    date = formatdate(time.time() + off_s, usegmt=True)
    world.prometheus.fault = changed(world, lambda _, result: result, Date=date)

    findings, _ = await doctor(world)

    assert of(findings, "clock")["state"] == state


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        pytest.param(without_names(""), "series", "there is none of vllm:num", id="no engine"),
        pytest.param(other_namespace, "labels", 'namespace="default"', id="no namespace label"),
        pytest.param(no_pod_label, "labels", "have no label pod", id="no pod label"),
    ],
)
async def test_series_that_belong_to_nobody_are_explained(
    world: World, change: Change, check: str, words: str
) -> None:
    await world.add_fleet("chat", rate_per_s=5.0)
    world.prometheus.fault = changed(world, change)

    findings, code = await doctor(world)

    assert code == 1
    assert words in of(findings, check, "chat")["says"]


async def test_series_of_other_pods_are_named(world: World) -> None:
    load = await world.add_fleet("chat", rate_per_s=5.0)
    load.pods = lambda: ["stranger-0"]

    findings, code = await doctor(world)

    assert code == 1
    assert "series are of pods stranger-0" in of(findings, "labels", "chat")["says"]


async def test_a_wrong_model_name_lists_those_that_are_there(world: World) -> None:
    await world.add_fleet("chat", rate_per_s=5.0, metrics={"modelName": "other"})

    findings, code = await doctor(world)

    assert code == 1
    assert "no series is of model other; there are: chat" in of(findings, "labels")["says"]


async def test_missing_completions_fail_and_name_the_candidates(world: World) -> None:
    await world.add_fleet("chat", rate_per_s=5.0)
    world.prometheus.fault = changed(world, without_names("request_success"))

    findings, code = await doctor(world)

    assert code == 1
    assert "vllm:request_success_total" in of(findings, "series", "completions")["says"]
    assert of(findings, "arrivals")["state"] == "warning"


async def test_an_objective_that_is_not_measured_is_a_warning(world: World) -> None:
    objectives = [{"metric": "EndToEnd", "target": "20s"}]
    await world.add_fleet("chat", rate_per_s=5.0, objectives=objectives)
    world.prometheus.fault = changed(world, without_names("e2e"))

    findings, _ = await doctor(world)

    found = of(findings, "objective", "EndToEnd p95")
    assert found["state"] == "warning"
    assert "the model alone answers" in found["says"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(scraped_seldom, "every 30 s", id="every 30 s"),
        pytest.param(scraped_once, "the interval is not known", id="once"),
    ],
)
async def test_a_long_scrape_interval_is_a_warning(
    world: World, change: Change, words: str
) -> None:
    await world.add_fleet("chat", rate_per_s=5.0)
    world.prometheus.fault = changed(world, change)

    findings, _ = await doctor(world)

    found = of(findings, "scrape", "chat")
    assert found["state"] == "warning"
    assert words in found["says"]


async def test_a_scrape_as_often_as_decisions_are_made_is_well(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)
    world.prometheus.fault = changed(world, scraped_seldom)

    findings, _ = await doctor(world, "--period", "30s")

    assert of(findings, "scrape")["state"] == "ok"


async def test_pods_without_series_are_counted(world: World) -> None:
    load = await world.add_fleet("chat", replicas=4, rate_per_s=5.0)
    load.pods = lambda: world.pods["chat"][:1]

    findings, _ = await doctor(world)

    assert of(findings, "coverage")["says"].startswith("1 of 4 ready pods")


async def test_a_gateway_counter_that_is_not_there_fails(world: World) -> None:
    arrivals = {"source": "Gateway", "counter": "gateway_requests_total"}
    await world.add_fleet("chat", rate_per_s=5.0, metrics={"arrivals": arrivals})

    findings, code = await doctor(world)

    assert code == 1
    assert "no rate of gateway_requests_total" in of(findings, "gateway")["says"]


async def test_every_finding_that_is_not_ok_says_how_to_mend_it(world: World) -> None:
    await world.add_fleet("chat", rate_per_s=5.0)
    world.prometheus.fault = changed(world, without_names("vllm:"))

    findings, _ = await doctor(world)

    assert bad(findings)
    assert all(one["mend"] for one in bad(findings))
