"""Fitting finds the constants that made the data."""

import dataclasses

import numpy as np
import pytest

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fit import cost, fit
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.measured import ClosedRun, OpenRun, in_flight, simulate

TRUTH = StepTime(
    fixed_s=0.02,
    weights_read_s=0.0,
    kv_read_s_per_token=0.0,
    token_compute_s=0.0,
    sequence_s=0.001,
    prefill_token_s=0.0008,
    request_s=0.01,
)
LIMITS = EngineLimits(max_sequences=32, step_token_budget=512, kv_capacity_tokens=100_000.0)


def open_run(rate_per_s: float) -> OpenRun:
    random = np.random.default_rng(2)
    arrivals = Arrivals.of(
        np.cumsum(random.exponential(1 / rate_per_s, 60)),
        random.integers(16, 128, 60),
        random.integers(16, 128, 60),
    )
    seen = simulate(arrivals, TRUTH, LIMITS)
    return OpenRun(arrivals=arrivals, ttft_s=seen.ttft_s, tpot_s=seen.tpot_s)


def test_the_truth_costs_nothing() -> None:
    assert cost(TRUTH, LIMITS, open_runs=[open_run(2.0)]) == pytest.approx(0.0, abs=1e-12)


def test_a_fit_from_afar_comes_back_to_the_truth() -> None:
    start = dataclasses.replace(TRUTH, fixed_s=0.014, sequence_s=0.0016, prefill_token_s=0.001)

    found = fit([start], LIMITS, open_runs=[open_run(1.0), open_run(4.0)])

    assert found.step_time.fixed_s == pytest.approx(0.02, rel=0.05)
    assert found.step_time.sequence_s == pytest.approx(0.001, rel=0.1)
    assert found.step_time.prefill_token_s == pytest.approx(0.0008, rel=0.05)
    assert found.step_time.weights_read_s == 0.0


def test_a_client_of_a_closed_loop_sends_when_it_has_its_answer() -> None:
    # one client: 10 ms outside, 20 + 32 x 0.8 ms for the prompt, 63 steps of 21 ms; then again
    run = ClosedRun(
        concurrency=1, requests=3, prompt_tokens=32, output_tokens=64, ttft_s=1.0, tpot_s=1.0
    )
    request_s = 0.010 + 0.020 + 0.0256 + 63 * 0.021

    seen = run.simulate(TRUTH, LIMITS)

    assert seen.e2e_s == pytest.approx([request_s] * 3)
    assert seen.t_s == pytest.approx([0.0, request_s, 2 * request_s])


def test_no_more_requests_are_in_a_closed_loop_than_it_has_clients() -> None:
    run = ClosedRun(
        concurrency=4, requests=20, prompt_tokens=32, output_tokens=64, ttft_s=1.0, tpot_s=1.0
    )

    seen = run.simulate(TRUTH, LIMITS)

    inside = [
        int(((seen.t_s <= moment) & (seen.t_s + seen.e2e_s > moment)).sum()) for moment in seen.t_s
    ]
    assert max(inside) == 4
    assert not np.isnan(seen.e2e_s).any()


def test_who_has_come_and_not_been_answered_is_in_flight() -> None:
    run = open_run(1.0)
    forever = np.full(60, 1e9)

    assert in_flight(run, forever, float(run.arrivals.t_s[9])) == 10
