"""
Roofline: how long one step of one replica takes, and what it waits for.

    time = max(flop / compute, bytes / bandwidth) + launches + per-sequence work

Decode reads every weight to emit one token per sequence, so it waits for memory. Prefill reuses
each weight across the whole prompt, so it waits for arithmetic. The ridge point divides the two.
"""

import math
from typing import Final

from fleetline.model.architecture import Architecture
from fleetline.model.hardware import BYTES_PER_VALUE, Precision
from fleetline.model.replica import Replica
from fleetline.model.step_time import StepTime

FLOP_PER_WEIGHT: Final = 2.0
"""One multiplication and one addition for each weight and token. [flop]"""

FLOP_PER_PAIR_AND_VALUE: Final = 4.0
"""Two for query times key, two for probability times value. [flop]"""

ALL_REDUCES_PER_LAYER: Final = 2.0
"""After attention and after the feed-forward block (Megatron-LM, arXiv:1909.08053, sec. 3)."""

EXCHANGES_PER_LAYER: Final = 2.0
"""Each chosen expert gets the token and sends its answer back (arXiv:2006.16668, sec. 3)."""

ACTIVATION_BYTES: Final = 2.0
"""Activations travel between tensor ranks in 16 bits. [bytes]"""

INTERCONNECT_SHARE: Final = 0.5
"""Bus bandwidth of a large all-reduce over the bidirectional data sheet figure: half of it is one
direction, and reducing inside the switch reaches nearly all of that."""

EXPERT_VALUES: Final = 44e6
EXPERT_POWER: Final = 0.25
"""Weights of one expert of one layer to which `Efficiency.expert_compute` belongs, and how what its
matrices reach grows with them: from 5 million (Qwen3-30B) to 176 million (Mixtral-8x7B)."""

POSITIONAL_VALUES: Final = 64.0
"""Values of a latent that carry the position (DeepSeek-V2: decoupled rotary keys)."""

REQUEST_S: Final = 0.008
"""Prior of the time outside the engine's steps: HTTP, tokenizing, first detokenizing. [s]"""


def step_time(replica: Replica) -> StepTime:
    """
    Coefficients of the step time of one lane of a replica, calibration included.

    Parameters
    ----------
    replica
        The model, its accelerators, how it is split, and what was learned from measurements.

    Returns
    -------
    StepTime
        One data-parallel rank of one pipeline micro-batch: `replica.lanes` run side by side.

    Notes
    -----
    Per tensor rank: weights / TP, KV cache / min(TP, key-value heads) (MLA: the whole latent), and
    with expert parallelism experts / (TP x DP), which the tokens of all DP ranks share. A pipeline
    stage holds 1/PP of the layers while PP micro-batches are under way, so a micro-batch sees the
    latency of all layers and 1/PP of the sequences.

    References
    ----------
    .. [1] S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance
           model for multicore architectures", Commun. ACM, vol. 52, no. 4, 2009,
           doi:10.1145/1498765.1498785.
    .. [2] R. Pope et al., "Efficiently scaling transformer inference", arXiv:2211.05102.
    """
    model, hardware, learned = replica.architecture, replica.accelerator, replica.calibration
    efficiency, tensor = hardware.efficiency, replica.tensor_parallel
    weight_bytes = BYTES_PER_VALUE[replica.weight_precision]
    kv_bytes = BYTES_PER_VALUE[replica.kv_precision]
    read_s_per_byte = learned.step / (efficiency.bandwidth * hardware.bandwidth_bytes_per_s)
    kv_read_s_per_byte = learned.step / (
        efficiency.kv_bandwidth * hardware.bandwidth_bytes_per_s * _kv_ranks(replica)
    )
    compute, prefill = _shares_of_peak(replica)
    flop_per_s = tensor * hardware.compute_flop_per_s(replica.weight_precision)
    attention_flop_per_s = tensor * hardware.compute_flop_per_s(Precision.BF16)
    reduce_s = all_reduce_s_per_token(replica)
    expert_ranks = replica.data_parallel if replica.expert_parallel else 1
    miss = 1.0 - model.experts_per_token / model.experts if model.experts else 0.0
    pair_flop = pair_flop_per_token(model)
    look_flop = look_back_flop_per_token(model)
    decode_flop = FLOP_PER_WEIGHT * (model.active_parameters - model.embedding_parameters)
    prefill_flop = decode_flop - FLOP_PER_WEIGHT * model.vocabulary_size * model.hidden_size
    return StepTime(
        fixed_s=learned.step * model.layers * _layer_s(replica),
        weights_read_s=model.shared_parameters * weight_bytes / tensor * read_s_per_byte,
        experts_read_s=(
            model.expert_parameters * weight_bytes / (tensor * expert_ranks) * read_s_per_byte
        ),
        expert_miss_probability=miss**expert_ranks,
        kv_read_s_per_token=model.kv_values_per_token * kv_bytes * kv_read_s_per_byte,
        window_read_s_per_token=model.window_kv_values_per_token * kv_bytes * kv_read_s_per_byte,
        window_tokens=model.window_tokens,
        token_compute_s=learned.step * decode_flop / (compute * flop_per_s),
        context_compute_s_per_token=(
            learned.step * look_flop / (efficiency.compute * attention_flop_per_s)
        ),
        sequence_s=learned.sequence * efficiency.sequence_s + learned.step * reduce_s,
        prefill_token_s=learned.prefill * (prefill_flop / (prefill * flop_per_s) + reduce_s),
        prefill_pair_s=learned.prefill * pair_flop / (efficiency.prefill * attention_flop_per_s),
        request_s=REQUEST_S if learned.request_s is None else learned.request_s,
        tokens_per_step=replica.tokens_per_step,
    )


def _layer_s(replica: Replica) -> float:
    """Fixed time of one layer. [s]"""
    efficiency, model = replica.accelerator.efficiency, replica.architecture
    return (
        efficiency.layer_s
        + (efficiency.parallel_layer_s if replica.tensor_parallel > 1 else 0.0)
        + (efficiency.expert_layer_s if model.experts else 0.0)
        + (efficiency.latent_layer_s if model.latent_attention else 0.0)
    )


def _shares_of_peak(replica: Replica) -> tuple[float, float]:
    """Shares of peak arithmetic that decode and prefill of this model reach. 0..1"""
    efficiency = replica.accelerator.efficiency
    has_units = bool(replica.accelerator.fp4_flop_per_s)
    narrow = replica.weight_precision is Precision.FP4 and has_units
    share = efficiency.four_bit_compute if narrow else 1.0
    compute, prefill = share * efficiency.compute, share * efficiency.prefill
    if not replica.architecture.experts:
        return compute, prefill
    model = replica.architecture
    size = model.expert_parameters / (model.layers * model.experts)
    wider = (size / EXPERT_VALUES) ** EXPERT_POWER
    return (
        compute * min(1.0, wider * efficiency.expert_compute),
        prefill * min(1.0, wider * efficiency.expert_prefill),
    )


def all_reduce_s_per_token(replica: Replica) -> float:
    """Time to send one token's activations around, between tensor and expert ranks. [s/token]"""
    ranks, model = replica.tensor_parallel, replica.architecture
    link = replica.accelerator.interconnect_bytes_per_s
    if not link:
        return 0.0
    layer_bytes = model.hidden_size * ACTIVATION_BYTES * model.layers
    sent_bytes = 2.0 * (ranks - 1) / ranks * ALL_REDUCES_PER_LAYER * layer_bytes
    if replica.expert_parallel and replica.data_parallel > 1:
        away = 1.0 - 1.0 / replica.data_parallel
        sent_bytes += EXCHANGES_PER_LAYER * away * model.experts_per_token * layer_bytes
    return sent_bytes / (INTERCONNECT_SHARE * link)


def pair_flop_per_token(model: Architecture) -> float:
    """Arithmetic of attention between one token and one token of its context. [flop]"""
    share = model.kv_values_per_token / model.all_kv_values_per_token
    return FLOP_PER_PAIR_AND_VALUE * model.layers * model.attention_heads * model.head_size * share


def look_back_flop_per_token(model: Architecture) -> float:
    """
    Arithmetic of decode attention between a new token and one token of its context. [flop]

    Latent attention does not unpack its cache: each head multiplies the whole latent, for the
    scores with its positional part and for the values without (DeepSeek-V2, arXiv:2405.04434,
    sec. 2.1).
    """
    if not model.latent_attention:
        return pair_flop_per_token(model)
    latent = model.kv_values_per_token / model.layers
    multiplied = 2.0 * latent - POSITIONAL_VALUES
    return FLOP_PER_PAIR_AND_VALUE / 2.0 * model.layers * model.attention_heads * multiplied


def _kv_ranks(replica: Replica) -> int:
    """Tensor ranks that share one copy of the KV cache."""
    if replica.architecture.latent_attention:
        return 1
    return max(1, min(replica.tensor_parallel, replica.architecture.kv_heads))


def single_stream_token_rate_per_s(replica: Replica) -> float:
    """Tokens per second of one request alone if only the data sheet's bandwidth held it. [1/s]"""
    model = replica.architecture
    active_bytes = model.active_parameters * BYTES_PER_VALUE[replica.weight_precision]
    return replica.tensor_parallel * replica.accelerator.bandwidth_bytes_per_s / active_bytes


def step_bytes(replica: Replica, *, sequences: float, context_tokens: float) -> float:
    """
    Move of one decode step of a whole replica: weights once, KV cache once per sequence. [bytes]

    `context_tokens` is the KV cache read by all sequences together.
    """
    model = replica.architecture
    miss = 1.0 - model.experts_per_token / model.experts if model.experts else 0.0
    weights = model.shared_parameters + model.expert_parameters * (1.0 - math.pow(miss, sequences))
    kv_values = model.all_kv_values_per_token * context_tokens
    weight_bytes = weights * BYTES_PER_VALUE[replica.weight_precision]
    return weight_bytes + kv_values * BYTES_PER_VALUE[replica.kv_precision]


def step_flop(replica: Replica, *, sequences: float, context_tokens: float) -> float:
    """Arithmetic of one decode step of a whole replica. [flop]"""
    model = replica.architecture
    linear_flop = FLOP_PER_WEIGHT * model.active_parameters * sequences
    return linear_flop + pair_flop_per_token(model) * context_tokens


def arithmetic_intensity_flop_per_byte(
    replica: Replica, *, sequences: float, context_tokens: float
) -> float:
    """Work per byte of a decode step; left of the ridge point it waits for memory. [flop/byte]"""
    moved_bytes = step_bytes(replica, sequences=sequences, context_tokens=context_tokens)
    return step_flop(replica, sequences=sequences, context_tokens=context_tokens) / moved_bytes


def is_memory_bound(replica: Replica, *, sequences: float, context_tokens: float) -> bool:
    """Whether a decode step of that batch waits for memory rather than for arithmetic."""
    intensity = arithmetic_intensity_flop_per_byte(
        replica, sequences=sequences, context_tokens=context_tokens
    )
    return intensity < replica.accelerator.ridge_point_flop_per_byte(replica.weight_precision)
