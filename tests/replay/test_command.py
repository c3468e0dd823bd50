"""`fleetline replay` as a person or a script calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fleetline.entrypoints.cli import build
from fleetline.errors import ManifestError

MODEL = ("--model", "llama-3.1-8b", "--accelerator", "A100-SXM-80GB")
OBJECTIVE = ("--objective", "TimeToFirstToken:p95:1s")
FLEET = """
apiVersion: fleetline.dev/v1alpha1
kind: ServingFleet
metadata: {name: chat}
spec:
  scaleTargetRef: {kind: Deployment, name: chat}
  model: {name: llama-3.1-8b}
  accelerator: {name: A100-SXM-80GB}
  objectives:
  - {metric: TimeToFirstToken, percentile: 95, target: 1s}
  minReplicas: 2
  maxReplicas: 6
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    times = np.sort(np.random.default_rng(5).uniform(0, 600, 3000))
    rows = "".join(f"{t:.3f},1000,100\n" for t in times)
    path = tmp_path / "short.csv"
    path.write_text("t_s,prompt_tokens,output_tokens\n" + rows, "utf-8")
    return path


def call(*arguments: object) -> str:
    result = CliRunner().invoke(build(), ["replay", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_holds_one_object_for_one_trace(trace: Path) -> None:
    found = json.loads(
        call(trace, "--policy", "fleetline,static", *MODEL, *OBJECTIVE, "-o", "json")
    )

    assert found["trace"] == "short"
    assert found["requests"] == 3000
    assert [one["name"] for one in found["policies"]] == ["fleetline", "static"]


def test_a_folder_is_replayed_trace_by_trace(trace: Path) -> None:
    (trace.parent / "clients.csv").write_text("model,client\nx,1\n", "utf-8")
    trace.with_name("rate.csv").write_text("t_s,rate_rps\n0,2\n60,3\n120,2\n", "utf-8")

    found = json.loads(
        call(trace.parent, "--policy", "static", "--no-bounds", *MODEL, *OBJECTIVE, "-o", "json")
    )

    assert [one["trace"] for one in found] == ["rate", "short"]


def test_requests_are_written_one_by_one(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "requests.csv"
    call(
        *(trace, "--policy", "static", "--no-bounds", *MODEL, *OBJECTIVE),
        *("--requests-out", out, "--end", "300"),
    )
    lines = out.read_text("utf-8").splitlines()

    assert lines[0] == "t_s,ttft_s,tpot_s,e2e_s,replica"
    assert 1300 < len(lines) < 1700


def test_a_fleet_file_gives_model_objectives_and_bounds(trace: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET, "utf-8")

    found = json.loads(
        call(trace, "--policy", "static,kubeai", "--fleet", fleet, "--no-bounds", "-o", "json")
    )

    assert 2 <= found["policies"][0]["parameters"]["replicas"] <= 6
    # kubeai's default of 100 requests asks for one replica; the fleet's minimum is two
    assert found["policies"][1]["replica_hours"] >= 2 * 600 / 3600 * 0.99


def test_csv_and_table_show_bounds_beside_policies(trace: Path) -> None:
    text = call(trace, "--policy", "static", "--no-bounds", *MODEL, *OBJECTIVE, "-o", "csv")

    assert text.splitlines()[0].startswith("trace,name,windows_met")
    assert "fluid bound" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("--policy", "static", *OBJECTIVE), "--model and --accelerator", id="no model"
        ),
        pytest.param(("--policy", "static", *MODEL), "--objective must be", id="no objective"),
        pytest.param(
            ("--policy", "x", *MODEL, *OBJECTIVE), "--policy must be one of", id="no such policy"
        ),
    ],
)
def test_wrong_use_is_said_in_one_sentence(trace: Path, arguments, message) -> None:
    with pytest.raises(ManifestError, match=message):
        call(trace, *arguments)


def test_an_objective_out_of_reach_is_said(trace: Path) -> None:
    with pytest.raises(Exception, match="cannot be met"):
        call(trace, "--policy", "static", *MODEL, "--objective", "TimeToFirstToken:p95:1ms")
