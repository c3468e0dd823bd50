"""
Where a replica settles. Laws:

1. more load never means less latency; 2. L = lambda W; 3. above its capacity nothing is stable;
4. the links of the chain add up to the residence time.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.errors import ModelError
from fleetline.model.objective import Metric
from fleetline.model.operating_point import capacity_per_s, operate
from fleetline.model.workload import TokenLengths, Workload
from tests.model.deployments import CHAT, replica

H100 = replica()
CAPACITY_PER_S = capacity_per_s(H100, CHAT)
LOADS = st.floats(0.01, 0.9)


@given(LOADS, LOADS, st.sampled_from(list(Metric)), st.sampled_from([50, 95, 99]))
@settings(max_examples=40)
def test_more_load_never_means_less_latency(
    one: float, other: float, metric: Metric, percentile: int
) -> None:
    low, high = sorted((one, other))

    calm = operate(H100, CHAT, low * CAPACITY_PER_S)
    busy = operate(H100, CHAT, high * CAPACITY_PER_S)

    assert busy.residence_time_s >= calm.residence_time_s * (1 - 1e-6)
    assert busy.percentile_s(metric, percentile) >= 0.98 * calm.percentile_s(metric, percentile)


@given(LOADS)
@settings(max_examples=20)
def test_littles_law_holds_and_the_chain_adds_up(load: float) -> None:
    point = operate(H100, CHAT, load * CAPACITY_PER_S)

    assert point.concurrency == pytest.approx(point.arrival_rate_per_s * point.residence_time_s)
    # The decode link weighs by requests, residence by tokens: they differ by the convoy's share.
    chain_s = sum(link.mean_s for link in point.chain)
    assert chain_s == pytest.approx(point.residence_time_s, rel=0.02)


def test_above_its_capacity_nothing_is_stable() -> None:
    point = operate(H100, CHAT, 1.01 * CAPACITY_PER_S)

    assert not point.is_stable
    assert point.percentile_s(Metric.TIME_TO_FIRST_TOKEN, 95) == math.inf
    assert point.attainment(Metric.END_TO_END, 1e9) == 0.0


def test_residence_time_grows_long_before_anything_waits() -> None:
    calm = operate(H100, CHAT, 0.1 * CAPACITY_PER_S)
    busy = operate(H100, CHAT, 0.7 * CAPACITY_PER_S)

    waits = {link.name: link.mean_s for link in busy.chain}
    assert busy.residence_time_s > 1.5 * calm.residence_time_s
    assert waits["slot wait"] < 1e-6


def test_a_request_alone_pays_its_prefill_and_its_steps() -> None:
    point = operate(H100, Workload(lengths=TokenLengths.fixed(1000, 100)), 1e-6)

    # 22 ms of prefill in a step of its own, 99 steps of 6.5 ms, 8 ms of HTTP.
    assert point.time_to_first_token_s == pytest.approx(0.031, rel=0.15)
    assert point.time_per_output_token_s == pytest.approx(0.0066, rel=0.1)


def test_the_loop_gain_reaches_for_one_where_the_queue_stops_draining() -> None:
    gains = [operate(H100, CHAT, load * CAPACITY_PER_S).loop_gain for load in (0.2, 0.5, 0.8, 0.95)]

    assert gains == sorted(gains)
    assert gains[0] < 0.25
    assert gains[-1] > 0.7


def test_a_prefix_cache_saves_prefill_and_nothing_else() -> None:
    prompts, outputs = np.array([2000.0]), np.array([100.0])
    cold = Workload(lengths=TokenLengths.of(prompts, outputs))
    warm = Workload(
        lengths=TokenLengths.of(prompts, outputs, cached_prompt_tokens=np.array([1500.0]))
    )

    without, with_cache = operate(H100, cold, 0.01), operate(H100, warm, 0.01)

    assert with_cache.time_to_first_token_s < 0.5 * without.time_to_first_token_s
    assert with_cache.time_per_output_token_s == pytest.approx(
        without.time_per_output_token_s, rel=0.01
    )


def test_speculative_decoding_divides_the_time_of_a_token() -> None:
    guessing = replace(H100, tokens_per_step=2.0)

    plain, faster = operate(H100, CHAT, 0.1), operate(guessing, CHAT, 0.1)

    assert faster.time_per_output_token_s == pytest.approx(
        plain.time_per_output_token_s / 2, rel=0.05
    )


def test_bursts_lengthen_the_tail_and_a_steady_beat_shortens_it() -> None:
    tails = [
        operate(H100, Workload(lengths=CHAT.lengths, dispersion=d), 0.6 * CAPACITY_PER_S)
        .percentile_s(Metric.TIME_TO_FIRST_TOKEN, 95)
        for d in (0.0, 1.0, 5.0)
    ]  # fmt: skip

    assert tails[0] < tails[1] < tails[2]


def test_a_model_that_does_not_fit_is_named() -> None:
    with pytest.raises(ModelError, match="KV cache of L4 must be >= one request"):
        operate(replica("llama-3.1-70b", "L4"), CHAT, 1.0)


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ModelError, match="arrival_rate must be >= 0"):
        operate(H100, CHAT, -1.0)


def test_many_replicas_share_the_bursts_that_one_would_have_to_bear_alone() -> None:
    bursty = Workload(lengths=CHAT.lengths, dispersion=10.0)
    rate = 0.6 * CAPACITY_PER_S

    alone, together = operate(H100, bursty, rate), operate(H100, bursty, rate, replicas=16)

    first = Metric.TIME_TO_FIRST_TOKEN
    assert together.percentile_s(first, 95) < 0.7 * alone.percentile_s(first, 95)
