"""KEDA recipes, WVA and Dynamo, against worked examples."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.model.step_time import StepTime
from fleetline.replay.baselines import dynamo, keda, llmd_keda, static, wva_queue, wva_v1, wva_v2
from fleetline.replay.baselines.hpa_behavior import HpaBehavior, HpaState
from fleetline.replay.baselines.wva_chain import ChainState, act
from fleetline.replay.observation import ReplicaSample
from tests.replay.looks import look, sample

STEP = StepTime(
    fixed_s=0.010,
    weights_read_s=0.0,
    kv_read_s_per_token=0.0,
    token_compute_s=0.0,
    sequence_s=0.001,
    prefill_token_s=0.0,
)


def test_static_stays() -> None:
    assert static.step(static.StaticParameters(replicas=6), None, look([sample()]))[1] == 6


def test_keda_takes_an_empty_answer_for_zero() -> None:
    parameters = keda.KedaParameters(behavior=HpaBehavior(scale_down_window_s=0.0))

    assert keda.step(parameters, HpaState(), look([], current=5))[1] == 1


def test_keda_divides_what_waits_by_the_threshold() -> None:
    seen = look([sample(waiting=9), sample(waiting=4)])

    assert keda.step(keda.KedaParameters(), HpaState(), seen)[1] == 3


def test_llmd_takes_the_larger_of_two_triggers() -> None:
    by_kv = look([sample(kv=0.9), sample(kv=0.9)])
    by_queue = look([sample(waiting=100, kv=0.1), sample(waiting=50, kv=0.1)])

    # 1.8 / 0.6 = 3; 150 / 30 = 5
    assert llmd_keda.step(llmd_keda.LlmdKedaParameters(), HpaState(), by_kv)[1] == 3
    assert llmd_keda.step(llmd_keda.LlmdKedaParameters(), HpaState(), by_queue)[1] == 5


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([sample(kv=0.75)] * 3, 4, id="spare KV 0.05 is below 0.10"),
        pytest.param([sample(kv=0.1, waiting=3)] * 3, 4, id="spare queue 2 is below 3"),
        pytest.param([sample(kv=0.9)] * 3, 4, id="all saturated"),
        pytest.param([sample(kv=0.5)] * 3, 3, id="0.75 after removal leaves 0.05"),
        pytest.param([sample(kv=0.4)] * 3, 2, id="0.60 after removal leaves 0.20"),
        pytest.param([sample(kv=0.1)], 1, id="one replica is kept"),
    ],
)
def test_wva_v1_moves_by_one(samples: list[ReplicaSample], expected: int) -> None:
    assert wva_v1.recommend(wva_v1.WvaV1Parameters(), look(samples)) == expected


def test_wva_v1_waits_while_a_replica_starts() -> None:
    seen = look([sample(kv=0.9)] * 3, current=4, ready=3)

    assert wva_v1.recommend(wva_v1.WvaV1Parameters(), seen) == 4


def test_wva_acts_on_what_was_published_a_turn_before() -> None:
    seen = look([sample()] * 2)
    state, first = act(HpaBehavior(), ChainState(), seen, 4)
    _, second = act(HpaBehavior(), state, seen, 4)

    assert (first, second) == (2, 4)


V2 = wva_v2.WvaV2Parameters(kv_capacity_tokens=100_000, step_token_budget=8192, max_sequences=256)


def test_wva_v2_derives_the_batch_from_the_token_budget() -> None:
    # n = min(8192 x 100 / 1000, 256) = 256; k2 = 256 x 950 = 243,200 > k1 = 80,000
    assert wva_v2.capacity_tokens(V2, (), 900.0, 100.0) == 80_000.0


def test_wva_v2_prefers_what_it_observed() -> None:
    assert wva_v2.capacity_tokens(V2, (50_000.0, 70_000.0), 900.0, 100.0) == 60_000.0


def test_wva_v2_adds_what_is_required() -> None:
    # demand 2 x 0.9 x 100,000 = 180,000; / 0.85 = 211,765; - 2 x 80,000 = 51,765: one more
    seen = look([sample(kv=0.9)] * 2, prompt=900.0, output=100.0)

    assert wva_v2.recommend(V2, (), seen)[1] == 3


def test_wva_v2_removes_what_is_spare() -> None:
    # spare 4 x 80,000 - 4 x 20,000 / 0.70 = 205,714: two of 80,000 fit
    seen = look([sample(kv=0.2)] * 4, prompt=900.0, output=100.0)

    assert wva_v2.recommend(V2, (), seen)[1] == 2


QUEUE = wva_queue.WvaQueueParameters(
    alpha_s=0.01,
    beta_s_per_token=0.0,
    gamma_s_per_token=0.0,
    max_batch=4,
    time_to_first_token_s=0.1,
    inter_token_latency_s=0.1,
)


def test_wva_queue_is_the_step_alone_when_nothing_waits() -> None:
    # T(n) = 10 ms whatever n: TTFT = prefill + decode = 20 ms, ITL = 10 ms
    means = wva_queue.mean_latency(QUEUE, 1e-3, 100.0, 10.0)

    assert means.time_to_first_token_s == pytest.approx(0.020, rel=1e-3)
    assert means.inter_token_latency_s == pytest.approx(0.010, rel=1e-3)


def test_wva_queue_with_one_slot_is_a_single_server_queue() -> None:
    # service (1 + 10) x 10 ms = 0.11 s at 4.545/s: rho 0.5, M/M/1 waits 1 service
    one = wva_queue.WvaQueueParameters(
        alpha_s=0.01, beta_s_per_token=0.0, gamma_s_per_token=0.0, max_batch=1
    )
    means = wva_queue.mean_latency(one, 0.5 / 0.11, 100.0, 10.0)

    assert means.time_to_first_token_s == pytest.approx(0.11 + 0.020, rel=1e-3)


@given(st.floats(0.03, 1.0))
def test_wva_queue_sizes_more_for_tighter_targets(factor: float) -> None:
    loose = wva_queue.sized_rate_per_s(QUEUE, 100.0, 10.0)
    tight = wva_queue.sized_rate_per_s(
        wva_queue.WvaQueueParameters(
            alpha_s=0.01,
            beta_s_per_token=0.0,
            gamma_s_per_token=0.0,
            max_batch=4,
            time_to_first_token_s=0.1 * factor,
            inter_token_latency_s=0.1,
        ),
        100.0,
        10.0,
    )

    assert tight <= loose * (1 + 1e-9)


DYNAMO = dynamo.DynamoParameters(
    step_time=STEP,
    kv_capacity_tokens=1e6,
    max_sequences=256,
    time_to_first_token_s=0.5,
    inter_token_latency_s=0.050,
)


def test_dynamo_finds_the_largest_batch_within_the_target() -> None:
    # 10 ms + n x 1 ms <= 50 ms: n = 40; 40 / (100 x 0.05 s) = 8 per second
    load = dynamo._Load(prompt=500.0, output=100.0)

    assert dynamo.engine_rate_per_s(DYNAMO, load) == pytest.approx(8.0, rel=1e-6)


def test_dynamo_leaves_prefill_room_to_keep_up_with_decode() -> None:
    # budget 40 tokens a step, 10 prompt tokens per answer token: 40 - 1000 / 100 = 30 sequences
    tight = dataclasses.replace(DYNAMO, step_token_budget=40)
    load = dynamo._Load(prompt=1000.0, output=100.0)

    # 30 / (100 x 0.040 s)
    assert dynamo.engine_rate_per_s(tight, load) == pytest.approx(7.5, rel=1e-6)


def test_dynamo_holds_the_first_token_target_without_what_the_prefix_cache_has() -> None:
    # 1 ms a prompt token; batch n queues n x 5 tokens and prefills 500: with a target of 0.56 s
    # for 500 + 5 n + 10 + n (1 + 5) ms, n = 4
    slow = dataclasses.replace(
        DYNAMO,
        step_time=dataclasses.replace(STEP, prefill_token_s=0.001),
        time_to_first_token_s=0.56,
        inter_token_latency_s=None,
    )
    fresh = dynamo._Load(prompt=500.0, output=100.0)
    cached = dynamo._Load(prompt=1000.0, output=100.0, hit_share=0.5)

    # 4 / (100 x (10 + 4 + 20) ms)
    assert dynamo.engine_rate_per_s(slow, fresh) == pytest.approx(4 / 3.4, rel=1e-6)
    assert dynamo.engine_rate_per_s(slow, cached) == pytest.approx(4 / 3.4, rel=1e-6)


def test_dynamo_sizes_every_three_minutes() -> None:
    state, counts = dynamo.DynamoState(), []
    for tick in range(37):
        seen = look(
            [sample(running=30)] * 2, now_s=5.0 * tick, rate=30.0, prompt=500.0, output=100.0
        )
        state, desired = dynamo.step(DYNAMO, state, seen)
        counts.append(desired)

    # the load loop sees 40 ms < 50 ms and 70 ms with one less: it holds; 30 / 8 rounded up is 4
    assert counts[:36] == [2] * 36
    assert counts[36] == 4


def test_dynamo_adds_one_when_every_engine_is_above_target() -> None:
    # 10 ms + 60 x 1 ms = 70 ms > 50 ms
    above = look([sample(running=60)] * 2, prompt=500.0, output=100.0)
    mixed = look([sample(running=60), sample(running=30)], prompt=500.0, output=100.0)

    assert dynamo.step(DYNAMO, dynamo.DynamoState(), above)[1] == 3
    assert dynamo.step(DYNAMO, dynamo.DynamoState(), mixed)[1] == 2


def test_dynamo_removes_one_only_if_the_rest_would_stay_well_below() -> None:
    # two of 10 become one of 20: 30 ms < 0.8 x 50 ms; two of 20 become one of 40: 50 ms
    light = look([sample(running=10)] * 2, prompt=500.0, output=100.0)
    heavy = look([sample(running=20)] * 2, prompt=500.0, output=100.0)

    assert dynamo.step(DYNAMO, dynamo.DynamoState(), light)[1] == 1
    assert dynamo.step(DYNAMO, dynamo.DynamoState(), heavy)[1] == 2


def test_dynamo_waits_while_a_replica_starts() -> None:
    seen = look([sample(running=60)] * 2, current=3, ready=2, prompt=500.0, output=100.0)

    assert dynamo.step(DYNAMO, dynamo.DynamoState(), seen)[1] == 3
