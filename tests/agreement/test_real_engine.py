"""
The simulator against a real vLLM 0.32 (two CPU cores, a small model, 32 slots).

Only the constants of a step are fitted: on the closed loop and on the runs at 1 and 5 requests/s.
The runs at 0.5, 2, 3, 4 and 6 requests/s are then predicted from their arrivals alone. Near and
above saturation TTFT is judged within a factor: a few per cent of the step time decide there
between a short queue and one that does not drain.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fleetline.model.step_time import StepTime
from sim_cluster.serving.fit import cost, fit
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.measured import in_flight, read_closed_runs, read_open_runs

DATA = Path(__file__).parents[1] / "data" / "agreement"
OPEN = read_open_runs(DATA / "real_vllm_open.csv")
CLOSED = read_closed_runs(DATA / "real_vllm_closed.csv")
LIMITS = EngineLimits(max_sequences=32, step_token_budget=512, kv_capacity_tokens=131_072.0)
TRAINING = (1.0, 5.0)

FITTED = StepTime(
    fixed_s=0.020483,
    weights_read_s=0.0086975,
    kv_read_s_per_token=1.9606e-6,
    token_compute_s=0.00063138,
    sequence_s=0.0010641,
    prefill_token_s=0.00086118,
    request_s=0.018999,
)
"""What `test_a_new_fit_finds_nothing_better` found on 2026-11-30."""


def ratios(rate_per_s: float) -> dict[str, float]:
    """Simulated over measured, of mean and 95th percentile."""
    run = OPEN[rate_per_s]
    seen = run.simulate(FITTED, LIMITS)
    return {
        "ttft mean": seen.ttft_s.mean() / run.ttft_s.mean(),
        "ttft p95": np.percentile(seen.ttft_s, 95) / np.percentile(run.ttft_s, 95),
        "tpot mean": seen.tpot_s.mean() / run.tpot_s.mean(),
        "tpot p95": np.percentile(seen.tpot_s, 95) / np.percentile(run.tpot_s, 95),
    }


@pytest.mark.parametrize("rate_per_s", [0.5, 2.0, 3.0])
def test_below_the_knee_every_statistic_is_within_15_percent(rate_per_s: float) -> None:
    seen = ratios(rate_per_s)

    assert {name: value for name, value in seen.items() if abs(value - 1) > 0.15} == {}


@pytest.mark.parametrize("rate_per_s", [4.0, 6.0])
def test_at_and_above_the_knee_the_pace_is_within_15_percent(rate_per_s: float) -> None:
    seen = ratios(rate_per_s)

    assert abs(seen["tpot mean"] - 1) <= 0.15
    assert abs(seen["tpot p95"] - 1) <= 0.15


@pytest.mark.parametrize("rate_per_s", [4.0, 6.0])
def test_at_and_above_the_knee_the_wait_is_within_a_factor_of_one_and_a_half(
    rate_per_s: float,
) -> None:
    seen = ratios(rate_per_s)

    assert 1 / 1.5 <= seen["ttft mean"] <= 1.5
    assert 1 / 1.5 <= seen["ttft p95"] <= 1.5


def test_the_queue_that_does_not_drain_grows_at_the_measured_pace() -> None:
    run = OPEN[6.0]
    seen = run.simulate(FITTED, LIMITS)

    measured = in_flight(run, run.e2e_s, 60.0) - in_flight(run, run.e2e_s, 20.0)
    simulated = in_flight(run, seen.e2e_s, 60.0) - in_flight(run, seen.e2e_s, 20.0)

    assert simulated == pytest.approx(measured, rel=0.15)


@pytest.mark.slow
def test_a_new_fit_finds_nothing_better() -> None:
    runs: dict[str, Any] = {
        "open_runs": [OPEN[rate] for rate in TRAINING],
        "closed_runs": list(CLOSED.values()),
    }

    found = fit([FITTED], LIMITS, **runs)

    assert cost(FITTED, LIMITS, **runs) <= 1.03 * found.cost
