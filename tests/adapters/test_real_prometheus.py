"""The queries on a real Prometheus: duplicates of a pair count once, a restart is no dip."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from fleetline.adapters import queries
from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.manifest import FleetObject, MetricsSpec
from fleetline.adapters.prometheus import Prometheus
from fleetline.adapters.replica_spec import ReplicaSpec
from fleetline.control.ports import Observations, Pod
from sim_cluster.prometheus import serving_prometheus
from tests.control.fakes import a_fleet

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None and shutil.which("apt-get") is None,
    reason="there is no Prometheus on PATH and no apt-get to fetch it with",
)

SCRAPE_S = 0.25
RATE_PER_S = 80.0
RUNNING = 7.0
GATEWAY = "gateway_requests_total"
GATEWAY_PER_S = 100.0
"""More than completes, so that one tells which was read."""


@dataclass
class Engines:
    """Two pods that complete requests at a steady rate since `since_s`."""

    pods: list[str]
    since_s: float = field(default_factory=time.time)
    running: float = RUNNING
    rate_per_s: float = RATE_PER_S
    frozen_s: dict[str, float] = field(default_factory=dict)
    """Since when a pod shows the same page."""
    aged_s: dict[str, float] = field(default_factory=dict)
    """How old a pod says its samples are."""
    hides: str = ""
    """Lines that begin so are not shown."""
    is_away: bool = False
    """Whether no scrape succeeds."""

    def exposition(self) -> str:
        """What a scrape shows."""
        lines = []
        for pod in self.pods:
            now_s = self.frozen_s.get(pod, time.time())
            done = self.rate_per_s / max(1, len(self.pods)) * (now_s - self.since_s)
            labels = f'namespace="default",pod="{pod}",model_name="chat",engine="0"'
            stamp = f" {int(1000 * (now_s - age_s))}" if (age_s := self.aged_s.get(pod)) else ""
            lines += [
                f"vllm:num_requests_running{{{labels}}} {self.running}{stamp}",
                f"vllm:num_requests_waiting{{{labels}}} 0{stamp}",
                f'vllm:request_success_total{{{labels},finished_reason="stop"}} {done}{stamp}',
                f"vllm:generation_tokens_total{{{labels}}} {100 * done}{stamp}",
                f"process_cpu_seconds_total{{{labels}}} {now_s - self.since_s}{stamp}",
            ]
        labels = 'namespace="default",pod="gateway-1",model_name="chat"'
        offered = GATEWAY_PER_S * (time.time() - self.since_s)
        lines.append(f"{GATEWAY}{{{labels}}} {offered}")
        shown = [one for one in lines if not self.hides or not one.startswith(self.hides)]
        return "\n".join(shown) + "\n"


@contextlib.asynccontextmanager
async def exporting(engines: Engines) -> AsyncIterator[str]:
    """Serve the exposition; yields host and port."""

    async def show(_: web.Request) -> web.Response:
        if engines.is_away:
            raise web.HTTPServiceUnavailable
        return web.Response(text=engines.exposition())

    application = web.Application()
    application.router.add_get("/metrics", show)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def observing(
    folder: Path, engines: Engines, *, jobs: tuple[str, ...], counter: str | None = None
) -> AsyncIterator[EngineMetrics]:
    """Scrape the engines by some jobs, and observe."""
    pods = tuple(Pod(name=name, created_s=0.0, ready_since_s=1.0) for name in engines.pods)
    async with (
        exporting(engines) as address,
        serving_prometheus(
            folder,
            discovery_url=None,
            scrape_interval_s=SCRAPE_S,
            targets=dict.fromkeys(jobs, address),
        ) as url,
    ):
        prometheus = Prometheus(url, deadline_s=5.0)
        metrics = EngineMetrics(
            prometheus, pods_of=lambda _: pods, period_s=SCRAPE_S, scrape_interval_s=SCRAPE_S
        )
        one = FleetObject(
            fleet=a_fleet(), replica=ReplicaSpec(), metrics=MetricsSpec(arrivals_counter=counter)
        )
        metrics.look_at([one])
        try:
            yield metrics
        finally:
            prometheus.close()


async def seen(metrics: EngineMetrics, within_s: float = 20.0) -> Observations:
    """Observe until the arrivals are known."""
    ends_s = time.monotonic() + within_s
    while True:
        observations = (await metrics.observe([a_fleet()]))["default/chat"]
        if observations.arrival_rate_per_s.is_known:
            await asyncio.sleep(8 * SCRAPE_S)
            return (await metrics.observe([a_fleet()]))["default/chat"]
        assert time.monotonic() < ends_s, observations.arrival_rate_per_s.unknown_because
        await asyncio.sleep(SCRAPE_S)


@pytest.mark.parametrize("jobs", [("one",), ("one", "two")], ids=["single", "highly available"])
async def test_a_pair_of_scrapes_counts_once(tmp_path: Path, jobs: tuple[str, ...]) -> None:
    async with observing(tmp_path, Engines(["chat-1", "chat-2"]), jobs=jobs) as metrics:
        observations = await seen(metrics)

    assert observations.arrival_rate_per_s.value == pytest.approx(RATE_PER_S, rel=0.2)
    assert observations.running_requests.value == 2 * RUNNING
    assert observations.reporting_replicas == 2
    assert metrics.queries_in_turn <= 12


async def test_a_counter_that_starts_anew_is_no_dip_and_no_jump(tmp_path: Path) -> None:
    engines = Engines(["chat-1", "chat-2"], since_s=time.time() - 3600.0)
    async with observing(tmp_path, engines, jobs=("one",)) as metrics:
        await seen(metrics)
        engines.since_s = time.time()
        await asyncio.sleep(3 * SCRAPE_S)
        observations = (await metrics.observe([a_fleet()]))["default/chat"]

    assert observations.arrival_rate_per_s.value == pytest.approx(RATE_PER_S, rel=0.6)


@pytest.mark.parametrize(
    ("running", "rate_per_s"),
    [pytest.param(RUNNING, RATE_PER_S, id="busy"), pytest.param(0.0, 0.0, id="idle")],
)
async def test_an_exporter_that_hangs_is_not_counted_until_a_window_after_it_moves(
    tmp_path: Path, running: float, rate_per_s: float
) -> None:
    engines = Engines(["chat-1", "chat-2"], running=running, rate_per_s=rate_per_s)
    async with observing(tmp_path, engines, jobs=("one",)) as metrics:
        before = await seen(metrics)
        engines.frozen_s["chat-2"] = time.time()
        await asyncio.sleep(6 * SCRAPE_S)
        frozen = (await metrics.observe([a_fleet()]))["default/chat"]
        engines.frozen_s["chat-1"] = time.time()
        await asyncio.sleep(6 * SCRAPE_S)
        looked_s = time.monotonic()
        blind = (await metrics.observe([a_fleet()]))["default/chat"]
        engines.frozen_s.clear()
        await asyncio.sleep(2 * SCRAPE_S)
        thawed = (await metrics.observe([a_fleet()]))["default/chat"]
        is_within_window = time.monotonic() - looked_s < metrics.window_s
        await asyncio.sleep(metrics.window_s + 3 * SCRAPE_S)
        after = (await metrics.observe([a_fleet()]))["default/chat"]

    assert (before.frozen_replicas, before.reporting_replicas) == (0, 2)
    assert (frozen.frozen_replicas, frozen.reporting_replicas) == (1, 1)
    assert not blind.arrival_rate_per_s.is_known
    if is_within_window:  # a busy machine may have taken longer
        assert not thawed.arrival_rate_per_s.is_known
    assert (after.frozen_replicas, after.reporting_replicas) == (0, 2)
    assert after.arrival_rate_per_s.value == pytest.approx(rate_per_s, rel=0.3)


@pytest.mark.parametrize(
    ("what", "jobs"),
    [
        pytest.param("the counter", ("one", "two"), id="the counter, for both of a pair"),
        pytest.param("the page", ("one",), id="the page"),
    ],
)
async def test_what_goes_and_comes_back_is_no_dip(
    tmp_path: Path, what: str, jobs: tuple[str, ...]
) -> None:
    engines = Engines(["chat-1", "chat-2"], since_s=time.time() - 3600.0)
    seen_per_s: list[float | None] = []

    async def look(for_s: float) -> None:
        ends_s = time.monotonic() + for_s
        while time.monotonic() < ends_s:
            found = (await metrics.observe([a_fleet()]))["default/chat"]
            seen_per_s.append(found.arrival_rate_per_s.value)
            await asyncio.sleep(SCRAPE_S / 2)

    async with observing(tmp_path, engines, jobs=jobs) as metrics:
        await seen(metrics)
        engines.is_away, engines.hides = what == "the page", "vllm:request_success_total"
        await look(2.5 * metrics.window_s)
        engines.is_away, engines.hides = False, ""
        await look(metrics.window_s + 6 * SCRAPE_S)

    known_per_s = [one for one in seen_per_s if one is not None]
    assert None in seen_per_s
    assert min(known_per_s) > 0.5 * RATE_PER_S
    assert max(known_per_s) < 2.0 * RATE_PER_S
    assert seen_per_s[-1] is not None


async def test_if_samples_cannot_be_counted_the_answer_is_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines(["chat-1", "chat-2"], since_s=time.time() - 3600.0)
    async with observing(tmp_path, engines, jobs=("one",)) as metrics:
        before = await seen(metrics)
        monkeypatch.setattr(queries, "short_completions", lambda *_: "no query")
        engines.rate_per_s, engines.since_s = RATE_PER_S / 4, time.time() - 3600.0
        await asyncio.sleep(metrics.window_s + 3 * SCRAPE_S)
        fallen = (await metrics.observe([a_fleet()]))["default/chat"]

    assert not before.is_partial
    assert fallen.is_partial
    assert fallen.arrival_rate_per_s.is_known


async def test_a_gateway_that_was_away_leaves_the_word_to_the_engines(tmp_path: Path) -> None:
    engines = Engines(["chat-1"], since_s=time.time() - 3600.0)
    seen_per_s: list[float | None] = []
    async with observing(tmp_path, engines, jobs=("one",), counter=GATEWAY) as metrics:
        before = await seen(metrics)
        engines.hides = GATEWAY
        await asyncio.sleep(1.5 * metrics.window_s)
        engines.hides = ""
        for _ in range(20):
            found = (await metrics.observe([a_fleet()]))["default/chat"]
            seen_per_s.append(found.arrival_rate_per_s.value)
            await asyncio.sleep(SCRAPE_S / 2)

    assert before.arrival_rate_per_s.value == pytest.approx(GATEWAY_PER_S, rel=0.1)
    assert all(one is not None and one > 0.5 * RATE_PER_S for one in seen_per_s)
    assert seen_per_s[-1] == pytest.approx(GATEWAY_PER_S, rel=0.1)


async def test_a_counter_that_shows_itself_when_it_first_counts_is_believed(tmp_path: Path) -> None:
    engines = Engines(["chat-1", "chat-2"], running=0.0, hides="vllm:request_success_total")
    async with observing(tmp_path, engines, jobs=("one",)) as metrics:
        await seen(metrics)
        engines.hides, engines.running, engines.since_s = "", RUNNING, time.time()
        await asyncio.sleep(0.6 * metrics.window_s)
        metrics._seldom._known.names_s = None
        found = (await metrics.observe([a_fleet()]))["default/chat"]

    assert found.arrival_rate_per_s.value is not None
    assert found.arrival_rate_per_s.value > 0.3 * RATE_PER_S


async def test_samples_that_are_pushed_late_are_not_the_present(tmp_path: Path) -> None:
    engines = Engines(["chat-1", "chat-2"], aged_s={"chat-2": 120.0})
    async with observing(tmp_path, engines, jobs=("one",)) as metrics:
        observations = await seen(metrics)

    assert (observations.frozen_replicas, observations.reporting_replicas) == (1, 1)


async def test_an_empty_prometheus_is_no_zero(tmp_path: Path) -> None:
    async with observing(tmp_path, Engines([]), jobs=("one",)) as metrics:
        observations = (await metrics.observe([a_fleet()]))["default/chat"]

    assert not observations.arrival_rate_per_s.is_known
