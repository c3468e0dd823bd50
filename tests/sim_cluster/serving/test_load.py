"""Traces from files, arrivals from rates, and loads with a name."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from fleetline.errors import ModelError
from sim_cluster.serving import shapes
from sim_cluster.serving.lengths import Lengths, Quantiles
from sim_cluster.serving.load import Selection, read_arrivals, read_lengths, read_rates, series_of
from sim_cluster.serving.rates import RateTrace

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


@pytest.mark.parametrize("dispersion", [1.0, 1.4, 13.0])
@pytest.mark.parametrize("stretch_s", [1.0, 10.0])
def test_counts_have_the_dispersion_that_was_asked_for(dispersion: float, stretch_s: float) -> None:
    trace = RateTrace.of([0.0, 40_000.0], [20.0])

    times = trace.draw(FIXED, dispersion=dispersion, seed=3).t_s

    counts = np.histogram(times, np.arange(0.0, 40_000.1, stretch_s))[0]
    assert counts.var() / counts.mean() == pytest.approx(dispersion, rel=0.1)
    assert times.size == pytest.approx(800_000, rel=0.01)


def test_the_same_seed_draws_the_same_requests() -> None:
    trace = shapes.diurnal(mean_per_s=1.0, peak_at_s=40_000)

    first, again, other = (trace.draw(FIXED, dispersion=2.0, seed=seed).t_s for seed in (1, 1, 2))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("trace", "requests", "peak_per_s"),
    [
        pytest.param(shapes.steady(rate_per_s=3, duration_s=100), 300, 3, id="steady"),
        pytest.param(shapes.ramp(from_per_s=0, to_per_s=10, duration_s=100), 500, 9.5, id="ramp"),
        pytest.param(
            shapes.step(before_per_s=1, after_per_s=5, at_s=50, duration_s=100),
            300,
            5,
            id="step",
        ),
        pytest.param(
            shapes.spike(rate_per_s=1, peak_per_s=9, at_s=10, length_s=10, duration_s=100),
            180,
            9,
            id="spike",
        ),
        pytest.param(
            shapes.diurnal(mean_per_s=2, peak_to_mean=1.75, peak_at_s=43_200),
            172_800,
            3.5,
            id="diurnal",
        ),
    ],
)
def test_a_shape_has_the_requests_and_the_peak_of_its_name(
    trace: RateTrace, requests: float, peak_per_s: float
) -> None:
    assert trace.requests == pytest.approx(requests)
    assert trace.rates_per_s.max() == pytest.approx(peak_per_s, rel=1e-3)


def test_a_retry_storm_is_silent_and_then_higher_than_before() -> None:
    # 10/s for 60 s come back with 0.7, 0.49, ... of themselves
    trace = shapes.retry_storm(rate_per_s=10, at_s=100, outage_s=60, duration_s=2000)

    silent = trace.rates_per_s[(trace.edges_s[:-1] >= 100) & (trace.edges_s[:-1] < 160)]
    assert silent.max() == 0
    assert trace.rates_per_s.max() == pytest.approx(10 + 0.7 * 600 / 10)
    assert trace.rates_per_s[-1] == pytest.approx(10, rel=0.5)


def test_a_dispersion_below_one_is_refused() -> None:
    with pytest.raises(ModelError, match=r"dispersion must be >= 1, got 0.5"):
        RateTrace.of([0, 1], [1]).draw(FIXED, dispersion=0.5)


def test_quantiles_beyond_the_last_known_one_stay_within_twice_of_it() -> None:
    steep = Quantiles.of([50, 99], [10, 10_000])

    assert steep.draw(np.random.default_rng(0), 100_000).max() <= 20_000
    assert math.isclose(steep.tokens[-1], min(10_000 * 1000 ** (0.01 / 0.49), 20_000), rel_tol=1e-6)
