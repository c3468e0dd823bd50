"""Reading traces: columns, cuts, scaling, and arrivals drawn from rates."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.errors import ManifestError
from fleetline.replay.drawing import LengthQuantiles, draw_times_s, read_lengths
from fleetline.replay.traces import TraceOptions, is_trace, read_traces

REQUESTS = "t_s,prompt_tokens,output_tokens\n0,100,10\n5,200,20\n10,300,30\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_request_trace_is_read_as_it_stands(tmp_path: Path) -> None:
    (trace,) = read_traces(write(tmp_path / "a.csv", REQUESTS), TraceOptions())

    assert trace.name == "a"
    assert trace.arrivals.t_s.tolist() == [0, 5, 10]
    assert trace.arrivals.prompt_tokens.tolist() == [100, 200, 300]
    # the last request and one mean gap of 5 s
    assert trace.duration_s == 15.0


def test_a_packed_trace_with_cached_prefixes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.csv.gz"
    text = "t_s,prompt_tokens,output_tokens,cached_prefix_tokens_ideal\n0,100,10,0\n1,100,10,64\n"
    path.write_bytes(gzip.compress(text.encode()))

    (trace,) = read_traces(path, TraceOptions())

    assert trace.name == "b"
    assert trace.arrivals.cached_prompt_tokens.tolist() == [0, 64]


def test_a_cut_sets_the_clock_to_zero(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", REQUESTS)

    (trace,) = read_traces(path, TraceOptions(start_s=4.0, end_s=11.0))

    assert trace.arrivals.t_s.tolist() == [1, 6]
    assert trace.duration_s == 7.0


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.5, 3.0, 7.3])
def test_scaling_multiplies_the_number_of_requests(tmp_path: Path, factor: float) -> None:
    rows = "".join(f"{t},100,10\n" for t in range(4000))
    path = write(tmp_path / "a.csv", "t_s,prompt_tokens,output_tokens\n" + rows)

    (trace,) = read_traces(path, TraceOptions(scale=factor))

    # at most half of 4,000 are drawn: a standard deviation of 32
    assert len(trace.arrivals) == pytest.approx(4000 * factor, abs=130)
    assert trace.duration_s == 4000.0


@pytest.mark.parametrize(
    ("header", "row", "expected_per_s"),
    [
        pytest.param("t_s,rate_rps", "{t},5", 5.0, id="per second"),
        pytest.param("t_s,rate_per_min", "{t},300", 5.0, id="per minute"),
        pytest.param("minute,rate_rps_mean", "{m},5", 5.0, id="by minute"),
    ],
)
def test_arrivals_follow_the_rate(
    tmp_path: Path, header: str, row: str, expected_per_s: float
) -> None:
    rows = "\n".join(row.format(t=60 * m, m=m) for m in range(60))
    (trace,) = read_traces(write(tmp_path / "r.csv", f"{header}\n{rows}\n"), TraceOptions())

    # Poisson: 18,000 requests, standard deviation 134
    assert trace.duration_s == 3600.0
    assert len(trace.arrivals) == pytest.approx(3600 * expected_per_s, abs=550)


def test_a_column_with_several_values_makes_several_traces(tmp_path: Path) -> None:
    text = "service,t_s,rate_rps\nchat,0,5\nchat,60,5\ncode,0,1\ncode,60,1\n"

    traces = read_traces(write(tmp_path / "week.csv", text), TraceOptions())

    assert [one.name for one in traces] == ["week:chat", "week:code"]


def test_the_same_seed_draws_the_same_requests(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "t_s,rate_rps\n0,5\n60,8\n")

    first, again = (read_traces(path, TraceOptions(seed=7))[0] for _ in range(2))

    assert np.array_equal(first.arrivals.t_s, again.arrivals.t_s)


@pytest.mark.parametrize("dispersion", [1.0, 4.0, 13.0])
def test_counts_have_the_dispersion_that_was_asked_for(dispersion: float) -> None:
    random = np.random.default_rng(1)
    times = draw_times_s(np.array([0.0, 40_000.0]), np.array([20.0]), dispersion, random)
    counts, _ = np.histogram(times, np.arange(0.0, 40_001.0, 10.0))

    # 4,000 counts: the variance is known to about 2.2 % (and the tail of a gamma)
    assert counts.var() / counts.mean() == pytest.approx(dispersion, rel=0.15)
    assert counts.mean() == pytest.approx(200.0, rel=0.02)


def test_wrong_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b\n1,2\n")

    with pytest.raises(ManifestError, match=r"columns of x.csv must be .* got a,b"):
        read_traces(path, TraceOptions())


def test_other_tables_are_told_from_traces(tmp_path: Path) -> None:
    assert is_trace(write(tmp_path / "a.csv", REQUESTS))
    assert is_trace(write(tmp_path / "r.csv", "t_s,rate_rps\n0,1\n"))
    assert not is_trace(write(tmp_path / "c.csv", "service,field,percentile,value\n"))


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_lengths_stay_within_the_given_percentiles(seed: int) -> None:
    lengths = LengthQuantiles.of(
        {"prompt_tokens": {10: 50, 50: 100, 99: 900}, "output_tokens": {50: 20}}
    )

    prompts, outputs = lengths.draw(500, np.random.default_rng(seed))

    assert prompts.min() >= 50
    assert prompts.max() <= 900
    assert set(outputs.tolist()) == {20}


def test_lengths_of_several_services_need_a_choice(tmp_path: Path) -> None:
    text = "service,field,percentile,value\n"
    for service in ("chat", "code"):
        text += f"{service},prompt_tokens,50,100\n{service},output_tokens,50,10\n"
    path = write(tmp_path / "l.csv", text)

    assert read_lengths(path, "chat").tokens["prompt_tokens"].tolist() == [100.0]
    with pytest.raises(ManifestError, match=r"service of l.csv must be chosen"):
        read_lengths(path)
