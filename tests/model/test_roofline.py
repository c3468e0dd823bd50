"""
Physics of one step. Worked numbers, then laws:

1. more bandwidth never makes a step longer; 2. tensor parallelism divides what is read;
3. a step with a prompt is never shorter than the same step without.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters.catalog import load_catalog
from fleetline.model.hardware import Precision
from fleetline.model.kv_cache import kv_bytes_per_token, kv_capacity_tokens
from fleetline.model.roofline import (
    arithmetic_intensity_flop_per_byte,
    is_memory_bound,
    single_stream_token_rate_per_s,
    step_flop,
    step_time,
)
from tests.model.deployments import replica

KIB = 1024.0


@pytest.mark.parametrize(
    ("model", "kib"),
    [
        pytest.param("llama-3.1-8b", 128.0, id="2 x 32 layers x 8 heads x 128 x 2 bytes"),
        pytest.param("llama-3.1-70b", 320.0, id="2 x 80 layers x 8 heads x 128 x 2 bytes"),
        pytest.param("deepseek-r1", 68.625, id="MLA: 61 layers x 576 values x 2 bytes"),
    ],
)
def test_a_token_of_context_has_its_size(model: str, kib: float) -> None:
    architecture = load_catalog().architecture(model)

    assert kv_bytes_per_token(architecture) / KIB == pytest.approx(kib)


def test_one_stream_of_a_70b_model_reads_its_weights_24_times_a_second() -> None:
    # 3.35 TB/s over 70.6 billion weights of 2 bytes.
    assert single_stream_token_rate_per_s(replica("llama-3.1-70b")) == pytest.approx(23.7, abs=0.5)


def test_the_ridge_of_an_h100_is_at_295() -> None:
    # 989.5 Tflop/s over 3.35 TB/s.
    ridge = replica().accelerator.ridge_point_flop_per_byte()

    assert ridge == pytest.approx(295.0, abs=1.0)


def test_decode_of_one_sequence_uses_less_than_a_hundredth_of_the_peak() -> None:
    one = replica()
    step_s = step_time(one).decode_s(1, 1000)

    used = step_flop(one, sequences=1, context_tokens=1000) / step_s

    assert used < 0.01 * one.accelerator.bf16_flop_per_s


def test_short_contexts_cross_the_ridge_and_long_ones_never_do() -> None:
    one = replica()

    assert is_memory_bound(one, sequences=100, context_tokens=100 * 10)
    assert not is_memory_bound(one, sequences=400, context_tokens=400 * 10)
    assert is_memory_bound(one, sequences=400, context_tokens=400 * 8000)


def test_intensity_of_one_sequence_is_about_one_flop_a_byte() -> None:
    # 2 flop and 2 bytes for each weight.
    intensity = arithmetic_intensity_flop_per_byte(replica(), sequences=1, context_tokens=1)

    assert intensity == pytest.approx(1.0, abs=0.1)


def test_quantized_weights_are_read_faster_and_leave_more_cache() -> None:
    wide = replica()
    narrow = replace(wide, weight_precision=Precision.FP8)

    assert step_time(narrow).weights_read_s == pytest.approx(step_time(wide).weights_read_s / 2)
    assert kv_capacity_tokens(narrow) > kv_capacity_tokens(wide)


def test_a_quantized_cache_holds_twice_the_tokens() -> None:
    wide = replica()
    narrow = replace(wide, kv_precision=Precision.FP8)

    assert kv_capacity_tokens(narrow) == pytest.approx(2 * kv_capacity_tokens(wide))


def test_tensor_ranks_share_weights_and_heads_but_copy_a_latent() -> None:
    dense, latent = replica("llama-3.1-70b", tensor=8), replica("deepseek-r1", "H200", tensor=8)
    alone, latent_alone = replica("llama-3.1-70b"), replica("deepseek-r1", "H200")

    assert step_time(dense).weights_read_s * 8 == pytest.approx(step_time(alone).weights_read_s)
    assert step_time(dense).kv_read_s_per_token * 8 == pytest.approx(
        step_time(alone).kv_read_s_per_token
    )
    assert step_time(latent).kv_read_s_per_token == pytest.approx(
        step_time(latent_alone).kv_read_s_per_token
    )


def test_more_tokens_touch_more_experts() -> None:
    step = step_time(replica("qwen3-30b-a3b", "H200"))

    few, many = step.linear_s(1, 0), step.linear_s(64, 0)

    assert few < 0.3 * many
    assert many == pytest.approx(step.weights_read_s + step.experts_read_s, rel=0.05)


def test_a_model_larger_than_the_memory_leaves_no_cache() -> None:
    assert kv_capacity_tokens(replica("llama-3.1-70b", "L4")) == 0.0


SEQUENCES = st.integers(1, 512)
CONTEXT = st.floats(1, 8000)


@given(SEQUENCES, CONTEXT, st.floats(1.0, 4.0))
def test_more_bandwidth_never_makes_a_step_longer(
    sequences: int, context: float, factor: float
) -> None:
    slow = replica()
    hardware = slow.accelerator
    fast = replace(
        slow,
        accelerator=replace(
            hardware, bandwidth_bytes_per_s=factor * hardware.bandwidth_bytes_per_s
        ),
    )

    tokens = sequences * context

    assert step_time(fast).decode_s(sequences, tokens) <= step_time(slow).decode_s(
        sequences, tokens
    )


@given(SEQUENCES, CONTEXT, st.integers(0, 8192))
def test_a_prompt_never_makes_a_step_shorter(sequences: int, context: float, prompt: int) -> None:
    step = step_time(replica())
    tokens = sequences * context

    with_prompt_s = step.step_s(
        sequences=sequences, context_tokens=tokens, prefill_tokens=prompt, prefill_pairs=prompt**2
    )

    assert with_prompt_s >= step.decode_s(sequences, tokens)
