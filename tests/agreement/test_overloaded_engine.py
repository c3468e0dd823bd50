"""
The simulator against an overloaded vLLM 0.19: Llama-3.1-8B on an RTX 4090, KV cache full.

300 requests in 29 s, answered within three minutes: the queue is a minute long and sequences are
preempted all the time. Fitted are the constants of a step; the limits are the engine's (the
default of 2,048 tokens a step; a KV cache of 41,500 tokens, read off the seconds in which no
request was preempted and the engine reported its use).
"""

from pathlib import Path

import numpy as np
import pytest

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fit import fit
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.measured import OpenRun
from sim_cluster.serving.table import read_table

DATA = Path(__file__).parents[1] / "data" / "agreement"
LIMITS = EngineLimits(max_sequences=256, step_token_budget=2048, kv_capacity_tokens=41_500.0)

FITTED = StepTime(
    fixed_s=0.0101,
    weights_read_s=0.00766,
    kv_read_s_per_token=1.35e-7,
    token_compute_s=9.68e-5,
    sequence_s=2.39e-5,
    prefill_token_s=9.15e-5,
    prefill_pair_s=8.45e-10,
    request_s=0.00236,
)


def measured() -> OpenRun:
    table = read_table(DATA / "vllm_overload.csv.gz")
    begin, first, last = (table.numbers(name) for name in ("t_s", "first_token_s", "last_token_s"))
    outputs = table.counts("output_tokens", least=1)
    return OpenRun(
        arrivals=Arrivals.of(begin, table.counts("prompt_tokens", least=1), outputs),
        ttft_s=first - begin,
        tpot_s=(last - first) / (outputs - 1),
    )


@pytest.mark.parametrize("percentile", [5, 25, 50, 75, 90, 95, 99])
def test_percentiles_of_ttft_and_tpot_are_within_15_percent(percentile: int) -> None:
    run = measured()

    seen = run.simulate(FITTED, LIMITS)

    for simulated, real in ((seen.ttft_s, run.ttft_s), (seen.tpot_s, run.tpot_s)):
        expected = np.percentile(real, percentile)
        assert np.percentile(simulated, percentile) == pytest.approx(expected, rel=0.15)


def test_the_last_answer_is_complete_when_it_really_was() -> None:
    run = measured()

    seen = run.simulate(FITTED, LIMITS)

    real_s = (run.arrivals.t_s + run.e2e_s).max()
    assert (seen.t_s + seen.e2e_s).max() == pytest.approx(real_s, rel=0.02)


@pytest.mark.slow
def test_the_constants_are_what_a_fit_finds() -> None:
    found = fit([FITTED], LIMITS, open_runs=[measured()])

    seen = measured().simulate(found.step_time, LIMITS)

    assert np.median(seen.ttft_s) == pytest.approx(np.median(measured().ttft_s), rel=0.05)
    assert np.median(seen.tpot_s) == pytest.approx(np.median(measured().tpot_s), rel=0.05)
