"""`fleetline predict`: the same rows in the same order, with predictions or a reason."""

import csv
import gzip
import io
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fleetline.entrypoints.commands import predict
from fleetline.entrypoints.predicting import COLUMNS

SWEEP = (
    "exp,model,gpu,tp,isl_nominal,osl_nominal,strategy,rate_rps,isl_mean,osl_mean,itl_mean_ms,"
    "ttft_mean_ms\n"
    "exp1,Llama-3.1-8B,H100-SXM (inferred),1,1024,256,constant@5.33,5.3133,1027.2,257.9,8.63,40.0\n"
    "exp1,Llama-3.1-8B,H100-SXM (inferred),1,1024,256,constant@10.0,10.0366,1033.5,258,11.0,43\n"
    "exp1,Llama-3.1-8B,H100-SXM (inferred),1,1024,256,constant@90,90.0,1033.5,258.0,,\n"
)
CLOSED = (
    "gpu,n_gpus,tp,model,weight_precision,engine,isl,osl,concurrency,tpot_mean_ms\n"
    "H100-SXM,2,2,Llama-3.1-70B,fp8,vllm,1024,1024,16,\n"
    "no such thing,1,1,Llama-3.1-8B,,vllm,1024,1024,16,\n"
    "H100-SXM,1,1,Llama-3.1-8B,,vllm,,1024,16,\n"
    "H100-SXM,1,1,Llama-3.1-8B,,vllm,1024,1024,,\n"
)


def run(tmp_path: Path, text: str, *options: str) -> tuple[int, list[dict[str, str]]]:
    """Exit code and rows printed."""
    app = typer.Typer()
    predict.register(app)
    asked = tmp_path / "rows.csv"
    asked.write_text(text)
    result = CliRunner().invoke(app, [str(asked), *options])
    return result.exit_code, list(csv.DictReader(io.StringIO(result.stdout)))


def test_rates_become_latencies_concurrency_and_throughput(tmp_path: Path) -> None:
    code, rows = run(tmp_path, SWEEP)

    calm, busy, _ = rows
    assert code == 0
    assert list(calm) == [*SWEEP.splitlines()[0].split(","), *COLUMNS]
    assert float(calm["pred_itl_mean_ms"]) == pytest.approx(8.6, rel=0.15)
    assert float(calm["pred_ttft_mean_ms"]) < float(calm["pred_ttft_p95_ms"])
    assert float(busy["pred_tpot_ms"]) > float(calm["pred_tpot_ms"])
    assert float(calm["pred_output_tps"]) == pytest.approx(5.3133 * 257.9, rel=1e-3)
    assert calm["pred_limit"] == "none"


def test_a_rate_above_capacity_is_unstable_with_infinite_latencies(tmp_path: Path) -> None:
    _, rows = run(tmp_path, SWEEP)

    assert rows[2]["pred_limit"] == "unstable"
    assert rows[2]["pred_ttft_mean_ms"] == "inf"
    assert float(rows[2]["pred_capacity_rps"]) < 90


def test_a_row_without_an_answer_says_why_and_the_others_are_answered(tmp_path: Path) -> None:
    code, rows = run(tmp_path, CLOSED)

    assert code == 1
    assert float(rows[0]["pred_tpot_ms"]) > 0
    assert rows[1]["pred_limit"].startswith("error: accelerator must be a name")
    assert rows[1]["pred_tpot_ms"] == ""
    assert rows[2]["pred_limit"].startswith("error: isl must be given")
    assert rows[3]["pred_limit"] in {"KVCache", "Slots"}
    assert float(rows[3]["pred_output_tps"]) > 1000


def test_measured_columns_change_nothing_unless_they_calibrate(tmp_path: Path) -> None:
    _, plain = run(tmp_path, SWEEP)
    _, other = run(tmp_path, SWEEP.replace("8.63", "99.0"))
    lesson = tmp_path / "fit.csv"
    lesson.write_text(SWEEP.replace("8.63", "10.0").replace("11.0,", "13.0,"))
    _, taught = run(tmp_path, SWEEP, "--calibrate", str(lesson))

    assert [row["pred_tpot_ms"] for row in plain] == [row["pred_tpot_ms"] for row in other]
    assert float(taught[0]["pred_tpot_ms"]) == pytest.approx(10.0, rel=0.05)
    assert float(taught[1]["pred_tpot_ms"]) == pytest.approx(13.0, rel=0.1)


def test_compressed_files_are_read_and_written(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in.csv.gz", tmp_path / "out.csv.gz"
    with gzip.open(asked, "wt") as file:
        file.write(SWEEP)
    app = typer.Typer()
    predict.register(app)

    result = CliRunner().invoke(app, [str(asked), "--out", str(answered)])

    with gzip.open(answered, "rt") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert result.stdout == ""
