"""
The places in a batch: slots and KV cache, and the wait for one.

The number in the batch is nearly normal with variance N z / (1 - g): the loop gain amplifies what
arrivals bring. At the limit the queue is a random walk that drains at capacity minus arrivals, so
its tail is geometric with ratio lambda / C. Both are joined where they meet.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from fleetline.model.first_token import Wait, service_s
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, Loop, closed_loop
from fleetline.model.mixed_step import mean
from fleetline.model.pace import LEVELS, ClosedPace
from fleetline.model.swing import TINY

FILLED = np.linspace(0.05, 1.0, 12)
"""Parts of the most that can decode, between which a batch is full with those in prefill."""

NEVER = 8.0
"""Standard deviations below the limit at which nobody waits for a place: 1e-12 of requests."""

ROOT_TWO_PI = (2.0 * np.pi) ** 0.5


def saturated(lanes: Lanes) -> Loop:
    """State when the queue never empties: its arrival rate is the capacity of the lane."""
    filling = _Filling.of(lanes)
    loop = closed_loop(lanes, filling.when_full(filling.decoding))
    # However many wait, prompts cannot pass faster than steps full of them.
    served = 1.0 / mean(lanes, service_s(lanes, loop))
    rate = np.minimum(loop.arrival_rate_per_s, served)
    return replace(loop, arrival_rate_per_s=rate, decoding=rate * lanes.decode_steps * loop.token_s)


def capacity_per_s(lanes: Lanes) -> Array:
    """Arrival rate of a lane from which on the queue does not drain, that of `saturated`. [1/s]"""
    filling = _Filling.of(lanes)
    served = 1.0 / mean(lanes, service_s(lanes, filling.pace))
    return filling.when_full(np.minimum(filling.pace.rate_per_s, served))


class _Filling(NamedTuple):
    """Batches of a lane up to the fullest, shape (questions, points)."""

    decoding: Array
    pace: ClosedPace
    inside: Array
    """Requests in the batch, those in prefill included. [requests]"""
    limit: Array

    @classmethod
    def of(cls, lanes: Lanes) -> Self:
        limit = np.maximum(lanes.batch_limit, TINY)
        decoding = np.minimum(limit, lanes.prefill_limit) * FILLED
        pace = ClosedPace.of(lanes, decoding)
        inside = np.maximum.accumulate(decoding + pace.rate_per_s * pace.own_s, axis=-1)
        return cls(decoding, pace, inside, limit)

    def when_full(self, values: Array) -> Array:
        """Look up where the batch reaches its limit, shape (questions, 1)."""
        if self.limit.ndim == 0:
            return np.asarray(np.interp(self.limit, self.inside, values))[()]
        rows = zip(self.limit[:, 0], self.inside, values, strict=True)
        return np.array([[np.interp(*row)] for row in rows])


def concurrency_variance(lanes: Lanes, loop: Loop) -> Array:
    """Variance of the number in the batch, and in prefill: what arrives, and the router's ties."""
    inside = loop.inside / np.maximum(loop.decoding, TINY)
    return np.asarray(loop.spread_requests2 * inside + LEVELS * (1.0 - 1.0 / lanes.replicas))


def slot_wait(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> tuple[Array, Wait]:
    """
    Probability to wait for a place, and the wait of those who do, exponential.

    `capacity_per_s` is the arrival rate of `saturated`. The cache fluctuates more than the slots
    do, because requests hold unequal parts of it.
    """
    deviation = np.sqrt(concurrency_variance(lanes, loop) * lanes.limit_uneven + 0.25)
    distance = (lanes.batch_limit - loop.inside) / deviation
    if distance.min() > NEVER:
        nobody = np.zeros_like(distance)
        return nobody, Wait(mean_s=nobody, variance_s2=nobody)
    spare = np.maximum(1.0 - loop.arrival_rate_per_s / capacity_per_s, 1.0 - ALMOST_ONE)
    burst = (1.0 + np.maximum(lanes.dispersion, 0.0)) / 2.0
    density = np.exp(-0.5 * np.minimum(distance * distance, 1400.0)) / ROOT_TWO_PI
    tail = density / deviation * burst / spare
    share = tail / (tail + special.ndtr(distance))
    # Beyond the limit the normal part is gone and everyone waits.
    share = np.maximum(share, np.where(distance > 0, 0.0, 0.5))
    wait_s = lanes.coupling * burst / (capacity_per_s * spare)
    return share, Wait(mean_s=wait_s, variance_s2=wait_s * wait_s)
