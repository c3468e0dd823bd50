"""
The simulator against queueing theory, where the engine degenerates to a textbook queue.

Slots are servers when a step takes the same time whatever it carries (M/M/c, M/G/1). The batch
is one shared processor when a step takes time in proportion to its sequences (M/G/1-PS).
Expected values lie within confidence intervals from 30 batches of one seeded run (99.9 %).
"""

import math

import numpy as np
import pytest
from scipy import stats

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.results import RequestResults

STEP_S = 1e-4
"""One step: small against service times of 0.1 s, so that time is nearly continuous."""

BATCHES = 30


def constant_step() -> StepTime:
    return StepTime(
        fixed_s=STEP_S,
        weights_read_s=0.0,
        kv_read_s_per_token=0.0,
        token_compute_s=0.0,
        sequence_s=0.0,
        prefill_token_s=0.0,
    )


def run(step_time: StepTime, rate_per_s: float, outputs, slots: int) -> RequestResults:
    random = np.random.default_rng(11)
    times = np.cumsum(random.exponential(1 / rate_per_s, outputs.size))
    limits = EngineLimits(max_sequences=slots, kv_capacity_tokens=1e12)
    fleet = FleetSimulation(Arrivals.of(times, 1, outputs), step_time, limits)
    fleet.advance(np.inf)
    return fleet.results()


def within_confidence(values, expected: float, allowance: float = 0.0) -> bool:
    """Whether the expected mean lies in the interval of batch means, widened by an allowance."""
    kept = values[len(values) // 20 :]
    means = np.array([batch.mean() for batch in np.array_split(kept, BATCHES)])
    half = stats.t.ppf(0.9995, BATCHES - 1) * means.std(ddof=1) / math.sqrt(BATCHES)
    assert half < 0.15 * expected, "the interval is too wide to say anything"
    return bool(abs(means.mean() - expected) <= half + allowance)


def erlang_c(servers: int, offered: float) -> float:
    """Probability of waiting in M/M/c (Erlang 1917)."""
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("servers", [1, 4, 16])
def test_slots_are_the_servers_of_m_m_c(servers: int) -> None:
    mean_tokens, utilization = 1000, 0.8
    service_s = mean_tokens * STEP_S
    rate_per_s = utilization * servers / service_s
    outputs = np.random.default_rng(3).geometric(1 / mean_tokens, 900_000)

    seen = run(constant_step(), rate_per_s, outputs, servers)

    wait_s = erlang_c(servers, utilization * servers) * service_s / (servers * (1 - utilization))
    # an arrival waits half a step more, for the step in progress
    assert within_confidence(seen.waiting_s, wait_s, allowance=STEP_S)


@pytest.mark.parametrize(
    ("short", "long"), [pytest.param(1000, 1000, id="M/D/1"), pytest.param(200, 5000, id="M/G/1")]
)
def test_one_slot_waits_as_pollaczek_and_khinchine_say(short: int, long: int) -> None:
    random = np.random.default_rng(4)
    outputs = np.where(random.random(300_000) < 0.9, short, long)
    service_s = outputs * STEP_S
    rate_per_s = 0.7 / service_s.mean()

    seen = run(constant_step(), rate_per_s, outputs, 1)

    wait_s = rate_per_s * (service_s**2).mean() / (2 * (1 - 0.7))
    assert within_confidence(seen.waiting_s, wait_s, allowance=STEP_S)


@pytest.mark.parametrize("utilization", [0.5, 0.8])
def test_a_step_in_proportion_to_its_sequences_shares_the_processor(utilization: float) -> None:
    # M/G/1-PS is insensitive: a request of x seconds stays x / (1 - rho), whatever the others do
    random = np.random.default_rng(5)
    outputs = np.where(random.random(100_000) < 0.8, 101, 1001)
    step_time = StepTime(
        fixed_s=1e-9,
        weights_read_s=0.0,
        kv_read_s_per_token=0.0,
        token_compute_s=0.0,
        sequence_s=STEP_S,
        prefill_token_s=0.0,
    )
    work_s = (outputs - 1) * STEP_S
    rate_per_s = utilization / work_s.mean()

    seen = run(step_time, rate_per_s, outputs, 4096)

    for tokens in (101, 1001):
        alone_s = (tokens - 1) * STEP_S
        chosen = seen.e2e_s[outputs == tokens]
        assert within_confidence(chosen, alone_s / (1 - utilization), allowance=0.02 * alone_s)


def test_prompts_alone_are_an_m_g_1_queue_of_tokens() -> None:
    # one slot and one output token: the prefill server, 50 us a token
    random = np.random.default_rng(6)
    prompts = np.where(random.random(200_000) < 0.9, 500, 4000)
    step_time = StepTime(
        fixed_s=1e-9,
        weights_read_s=0.0,
        kv_read_s_per_token=0.0,
        token_compute_s=0.0,
        sequence_s=0.0,
        prefill_token_s=5e-5,
    )
    service_s = prompts * 5e-5
    rate_per_s = 0.7 / service_s.mean()
    times = np.cumsum(random.exponential(1 / rate_per_s, prompts.size))
    limits = EngineLimits(max_sequences=1, kv_capacity_tokens=1e12)
    fleet = FleetSimulation(Arrivals.of(times, prompts, 1), step_time, limits)

    fleet.advance(np.inf)

    wait_s = rate_per_s * (service_s**2).mean() / (2 * (1 - 0.7))
    assert within_confidence(fleet.results().waiting_s, wait_s)
