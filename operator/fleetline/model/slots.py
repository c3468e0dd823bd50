"""
The places in a batch: slots and KV cache, and the wait for one.

The number in the batch is nearly normal with variance N z / (1 - g): the loop gain amplifies what
arrivals bring. At the limit the queue is a random walk that drains at capacity minus arrivals, so
its tail is geometric with ratio lambda / C. Both are joined where they meet.
"""

from dataclasses import replace

import numpy as np
from scipy import special

from fleetline.model.first_token import Wait, service_s
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, LEVELS, Loop, closed_loop, closed_pace
from fleetline.model.mixed_step import mean
from fleetline.model.swing import TINY

BLOCK_SLACK_TOKENS = 8.0
"""Half a block of 16 tokens: what the last block of a sequence leaves empty on average."""

KV_FILL = 0.97
"""Share of the cache that is of use when requests wait for it: the rest is kept by what preemption
computes twice (iteration-level simulation, 8 shapes on two accelerators: 0.93 to 1)."""

ROUNDS = 2
"""Of a fixed point that contracts by the share of time spent in prefill."""


def kv_limit(lanes: Lanes) -> Array:
    """Requests whose contexts fill the KV cache. [requests]"""
    held_tokens = lanes.context_tokens + BLOCK_SLACK_TOKENS
    return KV_FILL * lanes.kv_capacity_tokens / held_tokens


def batch_limit(lanes: Lanes) -> Array:
    """Most requests that one lane runs at once: its slots or its KV cache. [requests]"""
    return np.minimum(lanes.max_sequences, kv_limit(lanes))


def prefill_limit(lanes: Lanes) -> Array:
    """Requests that decode when every step is full of prompts. [requests]"""
    per_step = lanes.step_token_budget / (lanes.prompt_tokens / lanes.decode_steps + 1.0)
    return np.asarray(per_step)


def in_prefill(loop: Loop) -> Array:
    """Requests in the batch that have no token yet. [requests]"""
    return np.asarray(loop.arrival_rate_per_s * loop.own_prefill_s)


def saturated(lanes: Lanes) -> Loop:
    """State when the queue never empties: its arrival rate is the capacity of the lane."""
    limit = np.maximum(batch_limit(lanes), TINY)
    most = np.minimum(limit, prefill_limit(lanes))
    decoding = most
    for _ in range(ROUNDS):
        _, prefilling = closed_pace(lanes, decoding)
        free = np.minimum(np.maximum(limit - prefilling, 0.05 * most), most)
        decoding = 0.5 * (decoding + free)
    loop = closed_loop(lanes, decoding)
    # However many wait, prompts cannot pass faster than steps full of them.
    served = 1.0 / mean(lanes, service_s(lanes, loop))
    rate = np.minimum(loop.arrival_rate_per_s, served)
    return replace(loop, arrival_rate_per_s=rate, decoding=rate * lanes.decode_steps * loop.token_s)


def concurrency_variance(lanes: Lanes, loop: Loop) -> Array:
    """Variance of the number in the batch, and in prefill: what arrives, and the router's ties."""
    inside = 1.0 + in_prefill(loop) / np.maximum(loop.decoding, TINY)
    return np.asarray(loop.spread_requests2 * inside + LEVELS * (1.0 - 1.0 / lanes.replicas))


def slot_wait(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> tuple[Array, Wait]:
    """
    Probability to wait for a place, and the wait of those who do, exponential.

    `capacity_per_s` is the arrival rate of `saturated`. The cache fluctuates more than the slots
    do, because requests hold unequal parts of it.
    """
    limit = batch_limit(lanes)
    uneven = np.where(
        kv_limit(lanes) < lanes.max_sequences, lanes.context_square / lanes.context_tokens**2, 1.0
    )
    deviation = np.sqrt(concurrency_variance(lanes, loop) * uneven + 0.25)
    distance = (limit - loop.decoding - in_prefill(loop)) / deviation
    rate = loop.arrival_rate_per_s
    spare = np.maximum(1.0 - rate / capacity_per_s, 1.0 - ALMOST_ONE)
    burst = (1.0 + np.maximum(lanes.dispersion, 0.0)) / 2.0
    density = np.exp(-0.5 * np.minimum(distance**2, 1400.0)) / np.sqrt(2.0 * np.pi)
    tail = density / deviation * burst / spare
    body = special.ndtr(distance)
    # Beyond the limit the normal part is gone and everyone waits.
    share = np.where(distance > 0, tail / (tail + body), np.maximum(tail / (tail + body), 0.5))
    wait_s = lanes.coupling * burst / (capacity_per_s * spare)
    return share, Wait(mean_s=wait_s, variance_s2=wait_s * wait_s)
