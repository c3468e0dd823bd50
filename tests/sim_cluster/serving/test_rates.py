"""Arrivals drawn from rates, and loads with a name."""

import math
from pathlib import Path

import numpy as np
import pytest

from fleetline.errors import ModelError
from sim_cluster.serving import shapes
from sim_cluster.serving.lengths import Lengths, Quantiles
from sim_cluster.serving.rates import RateTrace

FIXED = Lengths.fixed(100, 10)


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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
