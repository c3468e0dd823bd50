"""
How many tokens, hence requests, the memory of a replica holds.

    tokens = (memory x utilization - weights - activations) / KV bytes per token
"""

from typing import Final

from fleetline.model.architecture import Architecture
from fleetline.model.hardware import BYTES_PER_VALUE, Precision
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths

ACTIVATION_COPIES: Final = 8.0
"""Buffers of hidden size in 16 bits that are alive at once in one layer: residual, norm, queries,
keys, values, the feed-forward block's two and its result."""

ACTIVATION_BYTES: Final = 2.0


def kv_bytes_per_token(model: Architecture, precision: Precision = Precision.BF16) -> float:
    """KV cache of one token in all layers, the sliding-window layers included. [bytes/token]"""
    return model.all_kv_values_per_token * BYTES_PER_VALUE[precision]


def weight_bytes(replica: Replica) -> float:
    """Weights in the memory of one accelerator. [bytes]"""
    model = replica.architecture
    expert_ranks = replica.tensor_parallel * (
        replica.data_parallel if replica.expert_parallel else 1
    )
    resident = model.embedding_parameters + model.shared_parameters
    values = resident / replica.tensor_parallel + model.expert_parameters / expert_ranks
    return values * BYTES_PER_VALUE[replica.weight_precision] / replica.pipeline_parallel


def activation_bytes(replica: Replica) -> float:
    """Largest working memory of one step on one accelerator. [bytes]"""
    model = replica.architecture
    return replica.step_token_budget * model.hidden_size * ACTIVATION_COPIES * ACTIVATION_BYTES


def kv_capacity_tokens(replica: Replica) -> float:
    """
    Tokens of context that the KV cache of one lane holds. [tokens]

    Zero if the weights alone fill the memory: the model does not fit.

    Notes
    -----
    Sliding-window layers are counted as if they kept everything up to their window in every
    sequence, so a model with a window holds more than this for long contexts; tensor ranks beyond
    the number of key-value heads hold copies, and MLA's latent is copied to every rank.
    """
    model = replica.architecture
    free_bytes = (
        replica.accelerator.memory_bytes * replica.memory_utilization
        - weight_bytes(replica)
        - activation_bytes(replica)
    )
    shards = 1 if model.latent_attention else min(replica.tensor_parallel, model.kv_heads)
    per_token = kv_bytes_per_token(model, replica.kv_precision) / shards
    return max(0.0, free_bytes * replica.pipeline_parallel / per_token / replica.pipeline_parallel)


def kv_limit_requests(replica: Replica, lengths: TokenLengths) -> float:
    """
    Mean number of requests whose contexts fill the cache of one lane. [requests]

    A running request holds its prompt and on average half of what it will say.
    """
    held = lengths.mean_prompt_tokens + lengths.mean_output_tokens / 2.0
    return kv_capacity_tokens(replica) / held
