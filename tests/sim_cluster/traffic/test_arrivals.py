"""Arrivals follow their shape, their dispersion and their trace."""

import gzip
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sim_cluster.traffic.arrivals import Arrival, draw_arrivals, read_rates, read_trace
from sim_cluster.traffic.lengths import FixedLengths, LogNormalLengths, SampledLengths
from sim_cluster.traffic.shapes import CompressedDay, Constant, Ramp, Sequence, Shape, Spike, Step

ANY = FixedLengths(100, 10)


def counts_per_second(arrivals: list[Arrival], duration_s: int) -> np.ndarray:
    return np.bincount([int(one.t_s) for one in arrivals], minlength=duration_s)


def test_a_constant_shape_brings_its_rate() -> None:
    arrivals = list(draw_arrivals(Constant(level_per_s=20, duration_s=500), ANY, seed=1))

    # 10,000 expected, standard deviation 100
    assert len(arrivals) == pytest.approx(10_000, abs=400)


def test_arrivals_come_in_order_and_inside_the_stretch() -> None:
    arrivals = list(draw_arrivals(Ramp(from_per_s=1, to_per_s=9, duration_s=100.5), ANY, seed=2))

    assert all(before.t_s <= after.t_s for before, after in pairwise(arrivals))
    assert arrivals[0].t_s >= 0
    assert arrivals[-1].t_s < 100.5


@pytest.mark.parametrize("dispersion", [1.0, 4.0, 13.0])
def test_counts_have_the_dispersion_that_was_asked_for(dispersion: float) -> None:
    shape = Constant(level_per_s=20, duration_s=4000)

    arrivals = list(draw_arrivals(shape, ANY, seed=3, dispersion=dispersion))
    counts = counts_per_second(arrivals, 4000)

    assert counts.var() / counts.mean() == pytest.approx(dispersion, rel=0.1)


def test_the_same_seed_brings_the_same_requests() -> None:
    shape = Constant(level_per_s=5, duration_s=60)
    lengths = LogNormalLengths(mean_prompt_tokens=500, mean_output_tokens=100)

    assert list(draw_arrivals(shape, lengths, seed=4)) == list(
        draw_arrivals(shape, lengths, seed=4)
    )


def test_drawn_lengths_have_their_mean() -> None:
    lengths = LogNormalLengths(mean_prompt_tokens=500, mean_output_tokens=100, variation=0.5)
    chance = np.random.default_rng(5)

    drawn = np.array([lengths.draw(chance) for _ in range(20_000)])

    assert drawn.mean(axis=0) == pytest.approx([500, 100], rel=0.02)


def test_sampled_lengths_stay_pairs() -> None:
    lengths = SampledLengths([(1, 2), (30, 40)])
    chance = np.random.default_rng(6)

    assert {lengths.draw(chance) for _ in range(100)} == {(1, 2), (30, 40)}


@pytest.mark.parametrize(
    ("shape", "t_s", "rate_per_s"),
    [
        pytest.param(Step(before_per_s=2, after_per_s=8, at_s=10), 9.9, 2, id="before the step"),
        pytest.param(Step(before_per_s=2, after_per_s=8, at_s=10), 10, 8, id="after the step"),
        pytest.param(Spike(base_per_s=1, peak_per_s=9, at_s=5, width_s=2), 6, 9, id="in the spike"),
        pytest.param(Spike(base_per_s=1, peak_per_s=9, at_s=5, width_s=2), 7, 1, id="past it"),
        pytest.param(Ramp(from_per_s=0, to_per_s=10, duration_s=20), 10, 5, id="half up the ramp"),
        pytest.param(
            CompressedDay(trough_per_s=2, peak_per_s=30, duration_s=200), 0, 2, id="midnight"
        ),
        pytest.param(
            CompressedDay(trough_per_s=2, peak_per_s=30, duration_s=200), 100, 30, id="noon"
        ),
        pytest.param(
            CompressedDay(trough_per_s=2, peak_per_s=30, duration_s=200, peak_at=0.3),
            *(60, 30),
            id="an early peak",
        ),
        pytest.param(
            CompressedDay(trough_per_s=2, peak_per_s=30, duration_s=200, peak_at=0.3),
            *(130, 16),
            id="half down from an early peak",
        ),
        pytest.param(
            Sequence((Constant(level_per_s=3, duration_s=10), Constant(level_per_s=7))),
            12,
            7,
            id="the second part",
        ),
    ],
)
def test_a_shape_has_its_rate_at_a_moment(shape: Shape, t_s: float, rate_per_s: float) -> None:
    assert shape.rate_per_s(t_s) == pytest.approx(rate_per_s)


@pytest.mark.parametrize(
    ("column", "unit"), [("rate_rps", 1.0), ("rate_per_min", 60.0)], ids=["a second", "a minute"]
)
def test_a_rate_trace_keeps_its_rates_in_less_time(
    tmp_path: Path, column: str, unit: float
) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(f"t_s,{column}\n0,{5 * unit}\n600,{9 * unit}\n1200,{2 * unit}\n")

    shape = read_rates(path, faster=60.0)

    assert shape.duration_s == 30.0
    assert [shape.rate_per_s(t_s) for t_s in (0.0, 9.9, 10.0, 29.0)] == [5, 5, 9, 2]


@pytest.mark.parametrize("read", [lambda path: list(read_trace(path)), read_rates])
def test_a_file_that_is_no_trace_is_refused_by_its_columns(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "other.csv"
    path.write_text("minute,hits\n0,5\n")

    with pytest.raises(ValueError, match="got minute, hits"):
        read(path)


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_a_trace_is_replayed_as_it_was(tmp_path: Path, name: str) -> None:
    text = "t_s,prompt_tokens,output_tokens\n0.0,374,44\n4.5,396,109\n9.0,879,55\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())

    arrivals = list(read_trace(path, start_s=4.0, end_s=9.0, faster=2.0))

    assert arrivals == [Arrival(0.25, 396, 109)]
