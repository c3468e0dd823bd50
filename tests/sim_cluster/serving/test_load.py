"""Traces and lengths from files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fleetline.errors import ModelError
from sim_cluster.serving.lengths import Lengths
from sim_cluster.serving.load import Selection, read_arrivals, read_lengths, read_rates, series_of

FIXED = Lengths.fixed(100, 10)


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_request_trace_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    text = "t_s,prompt_tokens,output_tokens,cached_prefix_tokens_ideal\n0,10,2,0\n1.5,20,3,16\n"
    path.write_bytes(gzip.compress(text.encode()))

    arrivals = read_arrivals(path)

    assert arrivals.t_s.tolist() == [0.0, 1.5]
    assert arrivals.prompt_tokens.tolist() == [10, 20]
    assert arrivals.cached_prompt_tokens.tolist() == [0, 16]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param("0,10,2\n1,x,2", r"trace.csv:3 prompt_tokens must be a number", id="text"),
        pytest.param(
            "0,10,2\n1,5,0",
            r"trace.csv:3 output_tokens must be a number >= 1, got 0",
            id="no output",
        ),
        pytest.param("0,1.5,2", r"trace.csv:2 prompt_tokens must be a whole number", id="half"),
        pytest.param(
            "5,10,2\n4,10,2",
            r"trace.csv:3 t_s must be >= the line before \(5\), got 4",
            id="time falls",
        ),
        pytest.param(
            "0,10,2\n1,10", r"trace.csv:3 row must have 3 cells, got 2", id="cell missing"
        ),
        pytest.param(
            "0,10,\n",
            r"trace.csv:2 output_tokens must be a number >= 1, got nothing",
            id="cell empty",
        ),
        pytest.param("nan,10,2", r"trace.csv:2 t_s must be a number >= 0, got nan", id="nan"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_field(
    tmp_path: Path, rows: str, message: str
) -> None:
    path = written(tmp_path, f"t_s,prompt_tokens,output_tokens\n{rows}\n")

    with pytest.raises(ModelError, match=message):
        read_arrivals(path)


@pytest.mark.parametrize(
    ("header", "rate"),
    [("t_s,rate_rps", 2.0), ("t_s,rate_per_min", 120.0)],
)
def test_rates_are_requests_a_second_whatever_the_column(
    tmp_path: Path, header: str, rate: float
) -> None:
    path = written(tmp_path, f"{header}\n0,{rate}\n600,{2 * rate}\n")

    trace = read_rates(path)

    assert trace.rates_per_s.tolist() == [2.0, 4.0]
    assert trace.edges_s.tolist() == [0.0, 600.0, 1200.0]


def test_minutes_are_minutes_and_missing_ones_are_silent(tmp_path: Path) -> None:
    path = written(tmp_path, "minute,rate_rps_mean,rate_rps_max_1s\n0,1,3\n1,1,3\n2,1,3\n9,1,3\n")

    trace = read_rates(path)

    assert trace.requests == pytest.approx(4 * 60)
    assert trace.edges_s[-1] == 600.0


def test_a_file_with_several_series_asks_which(tmp_path: Path) -> None:
    path = written(tmp_path, "service,t_s,rate_rps\ncode,0,1\ncode,60,1\nconv,0,9\nconv,60,9\n")

    assert series_of(path) == ("code", "conv")
    assert read_rates(path, "conv").rates_per_s.tolist() == [9.0, 9.0]
    with pytest.raises(ModelError, match="series must be one of code, conv, got None"):
        read_rates(path)


def test_rates_without_lengths_ask_for_them(tmp_path: Path) -> None:
    path = written(tmp_path, "t_s,rate_rps\n0,1\n")

    with pytest.raises(ModelError, match="lengths must be given, got none"):
        read_arrivals(path)


def test_a_stretch_begins_at_zero_and_a_scale_multiplies(tmp_path: Path) -> None:
    rows = "".join(f"{t},10,2\n" for t in range(1000))
    path = written(tmp_path, f"t_s,prompt_tokens,output_tokens\n{rows}")

    cut = read_arrivals(path, Selection(start_s=100, end_s=200))
    twice = read_arrivals(path, Selection(scale=2.5, seed=1))
    half = read_arrivals(path, Selection(scale=0.5, seed=1))

    assert cut.t_s.tolist() == list(range(100))
    assert len(twice) == pytest.approx(2500, rel=0.05)
    assert (np.diff(twice.t_s) >= 0).all()
    assert len(half) == pytest.approx(500, rel=0.1)


def test_lengths_follow_their_percentiles(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "field,percentile,value\ninput_tokens,50,1000\ninput_tokens,90,4000\n"
        "output_tokens,10,-2\noutput_tokens,50,30\noutput_tokens,99,700\n",
    )

    lengths = read_lengths(path)
    drawn = lengths.prompt.draw(np.random.default_rng(1), 200_000)
    answers = lengths.output.draw(np.random.default_rng(1), 200_000)

    assert np.percentile(drawn, [50, 90]) == pytest.approx([1000, 4000], rel=0.03)
    assert np.percentile(answers, 99) == pytest.approx(700, rel=0.03)
    assert answers.min() == 1


def test_percentiles_in_columns_are_read_too(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "model,field,mean,p10,p50,p99\na,input_tokens,9,10,100,1000\na,output_tokens,9,1,3,50\n",
    )

    assert read_lengths(path, "a").prompt.tokens[1:4].tolist() == [10.0, 100.0, 1000.0]
