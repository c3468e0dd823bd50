"""
The reference engine on cases that can be worked by hand.

A step here takes 10 ms, and 1 ms for each prompt token, whatever the batch.
"""

import math

import pytest

from fleetline.errors import ModelError
from fleetline.model.step_time import StepTime
from sim_cluster.serving.replica import Request, ServingReplica

STEP_TIME = StepTime(
    fixed_s=0.010,
    weights_read_s=0.0,
    kv_read_s_per_token=0.0,
    token_compute_s=0.0,
    sequence_s=0.0,
    prefill_token_s=0.001,
)


def replica(**limits) -> ServingReplica:
    return ServingReplica(
        STEP_TIME,
        **{
            "max_sequences": 4,
            "step_token_budget": 100,
            "kv_capacity_tokens": 1600,
            "block_tokens": 16,
            **limits,
        },
    )


def request(number: int, arrival_s: float, prompt: int, output: int, cached: int = 0) -> Request:
    return Request(
        id=number,
        arrival_s=arrival_s,
        prompt_tokens=prompt,
        output_tokens=output,
        cached_prompt_tokens=cached,
    )


class Listener:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, float]] = []

    def admitted(self, request: Request, waiting_time_s: float) -> None:
        self.heard.append(("admitted", waiting_time_s))

    def first_token(self, request: Request, time_to_first_token_s: float) -> None:
        self.heard.append(("first", time_to_first_token_s))

    def token_gap(self, gap_s: float, sequences: int) -> None:
        self.heard.append(("gap", gap_s))


def test_one_request_takes_its_prompt_and_a_step_for_each_further_token() -> None:
    # 10 ms + 20 tokens x 1 ms, then two steps of 10 ms
    engine = replica()
    engine.submit(request(1, 1.0, prompt=20, output=3))

    (done,) = engine.advance(10.0)

    assert done.time_to_first_token_s == pytest.approx(0.030)
    assert done.residence_time_s == pytest.approx(0.050)
    assert done.time_per_output_token_s == pytest.approx(0.010)
    assert engine.is_idle


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks() -> None:
    # 100 + 100 + 50 tokens: three steps of 10 ms and 250 tokens of 1 ms
    engine = replica()
    engine.submit(request(1, 0.0, prompt=250, output=1))

    (done,) = engine.advance(10.0)

    assert done.time_to_first_token_s == pytest.approx(0.280)
    assert engine.counters.steps == 3


def test_a_decoding_sequence_keeps_its_pace_in_the_steps_that_carry_a_prompt() -> None:
    # the second prompt comes during step 1 and is computed in step 2, beside one decoded token
    engine = replica()
    engine.submit(request(1, 0.0, prompt=10, output=3))
    engine.submit(request(2, 0.005, prompt=30, output=1))

    first, second = sorted(engine.advance(10.0), key=lambda done: done.request.id)

    assert second.first_token_s == pytest.approx(0.020 + 0.040)
    assert first.finished_s == pytest.approx(0.020 + 0.040 + 0.010)


def test_a_cached_prefix_is_not_computed_again_but_the_last_token_always_is() -> None:
    engine = replica()
    engine.submit(request(1, 0.0, prompt=50, output=1, cached=50))

    (done,) = engine.advance(10.0)

    assert done.time_to_first_token_s == pytest.approx(0.011)
    assert engine.counters.prefix_hits_tokens == 49


def test_requests_beyond_the_slots_wait_their_turn() -> None:
    engine = replica(max_sequences=1)
    engine.submit(request(1, 0.0, prompt=10, output=2))
    engine.submit(request(2, 0.0, prompt=10, output=2))
    engine.advance(0.015)

    waiting, running = engine.waiting, engine.running
    last = engine.advance(10.0)[-1]

    assert (waiting, running) == (1, 1)
    assert last.waiting_time_s == pytest.approx(0.030)


def test_the_request_admitted_last_is_preempted_and_computes_everything_again() -> None:
    # 4 blocks of 16: both prompts take one block, both answers need two more
    engine = replica(kv_capacity_tokens=64)
    engine.submit(request(1, 0.0, prompt=16, output=40))
    engine.submit(request(2, 0.0, prompt=16, output=40))

    first, second = engine.advance(10.0)

    assert first.request.id == 1
    assert (first.preemptions, second.preemptions) == (0, 1)
    # both reach 32 tokens of context, need a third block each: 17 tokens are lost with the second
    assert engine.counters.prefix_queries_tokens == 16 + 16 + (16 + 17)
    assert engine.kv_used_tokens == 0


def test_a_request_that_can_never_fit_is_refused_with_the_numbers() -> None:
    engine = replica(kv_capacity_tokens=64)

    with pytest.raises(ModelError, match=r"must be <= the KV cache \(64 tokens\), got 60 \+ 5"):
        engine.submit(request(1, 0.0, prompt=60, output=5))


def test_time_outside_the_engine_delays_the_first_token_once() -> None:
    late = StepTime(
        **{name: getattr(STEP_TIME, name) for name in STEP_TIME.__slots__ if name != "request_s"},
        request_s=0.2,
    )
    engine = ServingReplica(late, max_sequences=1, step_token_budget=100, kv_capacity_tokens=160)
    engine.submit(request(1, 0.0, prompt=20, output=3))

    (done,) = engine.advance(10.0)

    assert done.time_to_first_token_s == pytest.approx(0.230)
    assert done.residence_time_s == pytest.approx(0.250)


def test_an_observer_hears_of_every_token() -> None:
    listener = Listener()
    engine = ServingReplica(
        STEP_TIME,
        max_sequences=1,
        step_token_budget=100,
        kv_capacity_tokens=160,
        observer=listener,
    )
    engine.submit(request(1, 0.0, prompt=20, output=3))
    engine.advance(10.0)

    kinds = [kind for kind, _ in listener.heard]

    assert kinds == ["admitted", "first", "gap", "gap"]
    assert [value for _, value in listener.heard] == pytest.approx([0.0, 0.030, 0.010, 0.010])


def test_following_the_next_event_always_gets_somewhere() -> None:
    engine = replica()
    engine.submit(request(1, 5.0, prompt=20, output=3))
    moments = []
    while math.isfinite(engine.next_event_s) and len(moments) < 100:
        moments.append(engine.next_event_s)
        engine.advance(moments[-1])

    assert moments == sorted(set(moments))
    assert moments[-1] == pytest.approx(5.050)
    assert engine.next_event_s == math.inf


def test_a_cancelled_request_frees_its_slot_and_its_blocks() -> None:
    engine = replica(max_sequences=1)
    engine.submit(request(1, 0.0, prompt=20, output=100))
    engine.submit(request(2, 0.0, prompt=20, output=1))
    engine.advance(0.035)

    assert engine.cancel(1)
    (done,) = engine.advance(10.0)

    assert done.request.id == 2
    assert engine.kv_used_tokens == 0
