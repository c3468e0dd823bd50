"""`fleetline backtest` on the history of a real Prometheus, written before it starts."""

import asyncio
import csv
import io
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fleetline.entrypoints.cli import build
from fleetline.errors import FleetlineError, ManifestError
from sim_cluster import tools
from sim_cluster.prometheus import serving_prometheus
from tests.entrypoints.world import World, fleet

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None and shutil.which("apt-get") is None,
    reason="there is no promtool on PATH and no apt-get to fetch it with",
)

RESULTS = Path(__file__).parents[2] / "operator" / "docs" / "results.yaml"
KEYS = yaml.safe_load(RESULTS.read_text("utf-8"))["keys"]
SCRAPE_S = 15
HOURS = 4
PODS = 8
BUSY_PER_S, QUIET_PER_S = 60.0, 6.0
LENGTHS = {"vllm:request_prompt_tokens": 1500.0, "vllm:request_generation_tokens": 250.0}
COUNTERS = {"vllm:request_success": 1.0, "vllm:generation_tokens": 250.0}
END_S = time.time() // 3600 * 3600
"""Whole hours, so that blocks of Prometheus are whole."""


def rate_per_s(at_s: float) -> float:
    """Busy until the last hour."""
    return BUSY_PER_S if at_s < END_S - 3600 else QUIET_PER_S


def history() -> Iterator[str]:
    """Write what a scrape of each pod showed, metric by metric, in OpenMetrics."""
    begin_s = END_S - HOURS * 3600
    times_s = [begin_s + step * SCRAPE_S for step in range(HOURS * 3600 // SCRAPE_S + 1)]
    rates_per_s = [rate_per_s(at_s) / PODS for at_s in times_s]
    done = [SCRAPE_S * total for total in itertools.accumulate(rates_per_s)]
    running = [3.0 * rate for rate in rates_per_s]

    def family(name: str, kind: str, **samples: list[float]) -> Iterator[str]:
        yield f"# TYPE {name} {kind}"
        for pod, (suffix, values) in itertools.product(range(PODS), samples.items()):
            sample = f"{name}{suffix}{{{labels(pod)}}}"
            yield from (f"{sample} {v} {at_s}" for at_s, v in zip(times_s, values, strict=True))

    yield from family("vllm:num_requests_running", "gauge", **{"": running})
    yield from family("vllm:num_requests_waiting", "gauge", **{"": [0.0] * len(times_s)})
    for name, each in COUNTERS.items():
        yield from family(name, "counter", _total=[each * count for count in done])
    for name, mean in LENGTHS.items():
        sums = [mean * count for count in done]
        yield from family(name, "summary", _count=done, _sum=sums)
    yield "# EOF\n"


def labels(pod: int) -> str:
    return f'namespace="default",pod="chat-abc-{pod}",model_name="chat",engine="0"'


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the history as Prometheus keeps it."""
    folder = tmp_path_factory.mktemp("history")
    (folder / "history.txt").write_text("\n".join(history()))
    subprocess.run(
        [
            *(tools.promtool(), "tsdb", "create-blocks-from", "openmetrics"),
            *(folder / "history.txt", folder / "prometheus"),
        ],
        check=True,
        capture_output=True,
        timeout=100,
    )
    return folder


@pytest.fixture
async def prometheus(blocks: Path, tmp_path: Path) -> AsyncIterator[str]:
    shutil.copytree(blocks / "prometheus", tmp_path / "prometheus")
    async with serving_prometheus(tmp_path, discovery_url=None, targets={}) as url:
        yield url


async def backtest(url: str, *arguments: str) -> tuple[str, int]:
    """Print and exit code."""
    everything = ["backtest", "--prometheus-url", url, "--since", "2h", "--end", str(END_S)]
    result = await asyncio.to_thread(
        lambda: CliRunner().invoke(build(), [*everything, *arguments], catch_exceptions=False)
    )
    return result.stdout, result.exit_code


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "fleet.yaml"
    whole = fleet("chat", model={"name": "llama-3.1-8b"})
    path.write_text(yaml.safe_dump(whole))
    return str(path)


async def test_a_history_is_decided_anew(prometheus: str, manifest: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    told, code = await backtest(
        prometheus, "--fleet", manifest, "--output", "json", "--html", str(page)
    )

    found: dict[str, Any] = json.loads(told)
    timeline = found["timeline"]
    assert code == 0
    assert found["fleet"] == "default/chat"
    assert found.keys() == KEYS["backtest"].keys()
    assert found["ran"].keys() == KEYS["backtest side"].keys()
    assert timeline[0].keys() == KEYS["backtest window"].keys()
    assert found["ran"]["gpu_hours"] == pytest.approx(PODS * 2, rel=0.02)
    assert found["ran"]["min_replicas"] == found["ran"]["max_replicas"] == PODS
    assert found["fleetline"]["gpu_hours"] < found["ran"]["gpu_hours"]
    assert found["fleetline"]["windows_above_ceiling"] == 0
    assert timeline[6]["arrival_rate_rps"] == pytest.approx(BUSY_PER_S, rel=0.05)
    assert timeline[-2]["arrival_rate_rps"] == pytest.approx(QUIET_PER_S, rel=0.05)
    assert timeline[-2]["fleetline_replicas"] < timeline[6]["fleetline_replicas"]
    assert "<html" in page.read_text("utf-8")


async def test_a_live_fleet_is_read_and_nothing_is_written(prometheus: str, world: World) -> None:
    await world.add_fleet("chat", replicas=PODS)
    before = world.api.request_counts.writes()

    told, code = await backtest(
        prometheus, "chat", "--kubeconfig", str(world.kubeconfig), "--output", "csv"
    )

    rows = list(csv.DictReader(io.StringIO(told)))
    assert code == 0
    assert len(rows) == 2 * 12
    assert float(rows[6]["ran_replicas"]) == PODS
    assert world.api.request_counts.writes() == before


async def test_a_table_shows_both_sides(prometheus: str, manifest: str) -> None:
    told, _ = await backtest(prometheus, "--fleet", manifest)

    assert "what ran" in told
    assert "fleetline" in told
    assert "gpu_hours" in told


async def test_a_fleet_without_history_is_said_so(prometheus: str, tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(fleet("other", model={"name": "llama-3.1-8b"})))

    with pytest.raises(FleetlineError, match="must show pods of Deployment other"):
        await backtest(prometheus, "--fleet", str(path))


async def test_a_name_and_a_file_are_one_too_many(manifest: str) -> None:
    with pytest.raises(ManifestError, match="NAME or --fleet must be given, one of them, got both"):
        await backtest("http://127.0.0.1:1", "chat", "--fleet", manifest)


async def test_a_prometheus_that_is_away_is_told(manifest: str) -> None:
    with pytest.raises(FleetlineError, match="cannot query Prometheus"):
        await backtest("http://127.0.0.1:1", "--fleet", manifest)
