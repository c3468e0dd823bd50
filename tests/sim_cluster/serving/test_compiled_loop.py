"""
The compiled loop agrees with the reference engine, on anything.

One replica: every moment of every request, every counter and gauge, preemption, sliding windows,
experts, speculative tokens and cached prefixes included. Several replicas: the same, routed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation, Router
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.replica import Request, ServingReplica

TOLERANCE_S = 1e-9

STEP_TIMES = st.builds(
    StepTime,
    fixed_s=st.floats(1e-4, 1e-2),
    weights_read_s=st.floats(0, 1e-2),
    experts_read_s=st.sampled_from([0.0, 5e-3]),
    expert_miss_probability=st.sampled_from([0.0, 0.9]),
    kv_read_s_per_token=st.floats(0, 1e-6),
    window_read_s_per_token=st.sampled_from([0.0, 1e-6]),
    window_tokens=st.sampled_from([0, 64, 256]),
    token_compute_s=st.floats(0, 3e-4),
    context_compute_s_per_token=st.floats(0, 1e-6),
    sequence_s=st.floats(0, 1e-4),
    prefill_token_s=st.floats(0, 1e-4),
    prefill_pair_s=st.sampled_from([0.0, 1e-8]),
    request_s=st.sampled_from([0.0, 0.003, 0.2]),
    tokens_per_step=st.sampled_from([1.0, 1.0, 1.7]),
)

LIMITS = st.builds(
    EngineLimits,
    max_sequences=st.integers(1, 24),
    step_token_budget=st.integers(24, 400),
    kv_capacity_tokens=st.integers(500, 4000),
    block_tokens=st.sampled_from([1, 8, 16]),
    watermark_share=st.sampled_from([0.0, 0.02]),
)


def requests(seed: int, rate_per_s: float) -> Arrivals:
    random = np.random.default_rng(seed)
    count = 60
    prompts = random.integers(1, 400, count)
    return Arrivals.of(
        np.cumsum(random.exponential(1 / rate_per_s, count)),
        prompts,
        random.integers(1, 200, count),
        (random.random(count) < 0.3) * random.integers(0, 400, count),
    )


def reference(step_time: StepTime, limits: EngineLimits) -> ServingReplica:
    return ServingReplica(
        step_time,
        **{name: getattr(limits, name) for name in EngineLimits.__slots__},
    )


def submit(engine: ServingReplica, arrivals: Arrivals, index: int) -> None:
    """Submit a request unless it can never fit; the fleet rejects those itself."""
    prompt, output = int(arrivals.prompt_tokens[index]), int(arrivals.output_tokens[index])
    if prompt + output > engine.limits.room_tokens(engine._tokens_per_step):
        return
    engine.submit(
        Request(
            id=index,
            arrival_s=float(arrivals.t_s[index]),
            prompt_tokens=prompt,
            output_tokens=output,
            cached_prompt_tokens=int(arrivals.cached_prompt_tokens[index]),
        )
    )


def moments(done, count: int) -> np.ndarray:
    table = np.full((count, 4), np.nan)
    for one in done:
        table[one.request.id] = (
            one.waiting_time_s,
            one.time_to_first_token_s,
            one.residence_time_s,
            one.preemptions,
        )
    return table


def moments_of(fleet: FleetSimulation) -> np.ndarray:
    seen = fleet.results()
    finished = ~np.isnan(seen.e2e_s)
    preempted = np.where(finished, seen.preemptions, np.nan)
    return np.stack((seen.waiting_s, seen.ttft_s, seen.e2e_s, preempted), axis=1)


@given(STEP_TIMES, LIMITS, st.integers(0, 10**6), st.sampled_from([1.0, 5.0, 40.0]))
@settings(max_examples=150)
def test_every_moment_of_every_request_is_the_reference_s(
    step_time: StepTime, limits: EngineLimits, seed: int, rate_per_s: float
) -> None:
    arrivals = requests(seed, rate_per_s)
    engine = reference(step_time, limits)
    for index in range(len(arrivals)):
        submit(engine, arrivals, index)
    fleet = FleetSimulation(arrivals, step_time, limits)

    fleet.advance(np.inf)
    expected = moments(engine.advance(np.inf), len(arrivals))

    np.testing.assert_allclose(moments_of(fleet), expected, rtol=0, atol=TOLERANCE_S)


@given(STEP_TIMES, LIMITS, st.integers(0, 10**6), st.floats(0.05, 15.0))
@settings(max_examples=100)
def test_a_glance_in_the_middle_shows_what_the_reference_shows(
    step_time: StepTime, limits: EngineLimits, seed: int, moment_s: float
) -> None:
    arrivals = requests(seed, 5.0)
    engine = reference(step_time, limits)
    for index in range(len(arrivals)):
        submit(engine, arrivals, index)
    fleet = FleetSimulation(arrivals, step_time, limits)
    moment_s = float(np.random.default_rng(seed).random() * moment_s)

    fleet.advance(moment_s)
    engine.advance(moment_s)
    seen = fleet.snapshot()

    assert seen.running[0] == engine.running
    assert seen.kv_used_tokens[0] == engine.kv_used_tokens
    assert seen.finished[0] == engine.counters.finished
    assert seen.preemptions[0] == engine.counters.preemptions
    assert seen.prompt_tokens[0] == engine.counters.prompt_tokens
    assert seen.prefix_hits_tokens[0] == engine.counters.prefix_hits_tokens
    # fractions of speculative tokens are tokens once they are whole
    slack = limits.max_sequences if step_time.tokens_per_step > 1 else 1e-6
    assert abs(seen.generation_tokens[0] - engine.counters.generation_tokens) <= slack


@given(STEP_TIMES, LIMITS, st.integers(0, 10**6))
@settings(max_examples=40)
def test_several_replicas_in_turn_are_as_many_references(
    step_time: StepTime, limits: EngineLimits, seed: int
) -> None:
    arrivals = requests(seed, 20.0)
    engines = [reference(step_time, limits) for _ in range(3)]
    fits = [
        int(p) + int(o) <= limits.room_tokens(step_time.tokens_per_step)
        for p, o in zip(arrivals.prompt_tokens, arrivals.output_tokens, strict=True)
    ]
    for turn, index in enumerate(np.flatnonzero(fits)):
        submit(engines[turn % 3], arrivals, int(index))
    fleet = FleetSimulation(
        arrivals, step_time, limits, router=Router.ROUND_ROBIN, initial_replicas=3
    )

    fleet.advance(np.inf)
    done = [one for engine in engines for one in engine.advance(np.inf)]

    expected = moments(done, len(arrivals))
    np.testing.assert_allclose(moments_of(fleet), expected, rtol=0, atol=TOLERANCE_S)


@pytest.mark.parametrize("router", list(Router))
def test_results_do_not_depend_on_how_often_somebody_looks(router: Router) -> None:
    step_time = StepTime(
        fixed_s=2e-3,
        weights_read_s=5e-3,
        kv_read_s_per_token=5e-8,
        token_compute_s=2e-5,
        sequence_s=3e-5,
        prefill_token_s=3e-5,
    )
    limits = EngineLimits(max_sequences=8, step_token_budget=256, kv_capacity_tokens=3000)
    arrivals = requests(7, 30.0)
    at_once = FleetSimulation(arrivals, step_time, limits, router=router, initial_replicas=3)
    in_steps = FleetSimulation(arrivals, step_time, limits, router=router, initial_replicas=3)

    at_once.advance(200.0)
    for moment_s in np.arange(0.0, 200.01, 0.05):
        in_steps.advance(min(float(moment_s), 200.0))
        in_steps.snapshot()
    in_steps.advance(200.0)

    np.testing.assert_array_equal(moments_of(in_steps), moments_of(at_once))
    np.testing.assert_array_equal(
        in_steps.snapshot().inter_token_latency.counts,
        at_once.snapshot().inter_token_latency.counts,
    )


def test_the_histogram_of_token_gaps_is_the_reference_s() -> None:
    heard: list[float] = []

    class Ear:
        def admitted(self, request: Request, waiting_time_s: float) -> None: ...

        def first_token(self, request: Request, time_to_first_token_s: float) -> None: ...

        def token_gap(self, gap_s: float, sequences: int) -> None:
            heard.extend([gap_s] * sequences)

    step_time = StepTime(
        fixed_s=4e-3,
        weights_read_s=5e-3,
        kv_read_s_per_token=4e-6,
        token_compute_s=2e-4,
        context_compute_s_per_token=3e-6,
        sequence_s=1e-3,
        prefill_token_s=1e-4,
    )
    limits = EngineLimits(max_sequences=16, step_token_budget=256, kv_capacity_tokens=3000)
    arrivals = requests(3, 10.0)
    engine = ServingReplica(
        step_time,
        max_sequences=16,
        step_token_budget=256,
        kv_capacity_tokens=3000,
        observer=Ear(),
    )
    for index in range(len(arrivals)):
        submit(engine, arrivals, index)
    fleet = FleetSimulation(arrivals, step_time, limits)

    engine.advance(5.0)
    fleet.advance(5.0)
    gaps = fleet.snapshot().inter_token_latency

    buckets = np.searchsorted(gaps.bounds_s, heard, side="left")
    expected = np.bincount(buckets, minlength=gaps.bounds_s.size + 1)
    np.testing.assert_array_equal(gaps.counts[0], expected)
    assert gaps.sums_s[0] == pytest.approx(sum(heard))
