"""
Distributions of the four latencies at a given state of the loop.

    TTFT = request + slot wait + residual step + prefill wait + own prefill
    TPOT = mean over its decode steps of (step time + prefill work of others)
    E2E  = TTFT + (output tokens - 1) TPOT

Each is a mixture over kinds of requests of a shifted gamma (waits) or a normal (averages), matched
to mean and variance.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from fleetline.model.lanes import Array, Lanes
from fleetline.model.loop import Loop, decode_limit, decode_steps, prefill_work_s
from fleetline.model.objective import Metric

TINY: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One latency, by kind of request: shift + variable part; shape (questions, points, kinds)."""

    mean_s: Array
    variance_s2: Array
    shift_s: Array
    """Below this it cannot fall. [s]"""
    weights: Array

    def attainment(self, target_s: Array | float) -> Array:
        """Share of requests at or below a target; shape (questions, points). 0..1"""
        return np.asarray((self.weights * self._below(target_s)).sum(axis=-1))

    def overall_mean_s(self) -> Array:
        """Mean over all requests; shape (questions, points). [s]"""
        return np.asarray((self.weights * self.mean_s).sum(axis=-1))

    def percentile_s(self, share: float) -> Array:
        """Latency that a share (0..1) of requests does not exceed, by bisection. [s]"""
        spread = np.sqrt(self.variance_s2)
        low = self.shift_s.min(axis=-1)
        high = (self.mean_s + 40.0 * spread).max(axis=-1) + TINY
        for _ in range(50):
            middle = 0.5 * (low + high)
            reached = self.attainment(middle[..., np.newaxis]) >= share
            high = np.where(reached, middle, high)
            low = np.where(reached, low, middle)
        return np.asarray(high)

    def _below(self, target_s: Array | float) -> Array:
        excess = self.mean_s - self.shift_s + TINY
        variance = self.variance_s2 + TINY * TINY
        shape = excess * excess / variance
        scaled = np.maximum(target_s - self.shift_s, 0.0) * excess / variance
        return np.asarray(special.gammainc(shape, scaled))


def latency_of(metric: Metric, lanes: Lanes, loop: Loop) -> Latency:
    """Distribution of one metric."""
    return {
        Metric.TIME_TO_FIRST_TOKEN: time_to_first_token,
        Metric.TIME_PER_OUTPUT_TOKEN: time_per_output_token,
        Metric.INTER_TOKEN_LATENCY: inter_token_latency,
        Metric.END_TO_END: end_to_end,
    }[metric](lanes, loop)


def own_prefill_s(lanes: Lanes, loop: Loop) -> Array:
    """Steps that hold the own prompt: its work, and one decode step for each chunk. [s]"""
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)[..., np.newaxis]
    chunks = np.ceil(lanes.kinds.prompt_tokens / budget)
    return prefill_work_s(lanes) + chunks * loop.step_s[..., np.newaxis]


def service_s(lanes: Lanes, loop: Loop) -> Array:
    """Time for which a prompt occupies the prefill server. [s]"""
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)[..., np.newaxis]
    share = lanes.kinds.prompt_tokens / budget
    return prefill_work_s(lanes) + share * loop.step_s[..., np.newaxis]


def prefill_wait(lanes: Lanes, loop: Loop) -> tuple[Array, Array]:
    """Mean and variance of the wait for the prefill server, M/G/1. [s], [s^2]"""
    service, weights = service_s(lanes, loop), lanes.kinds.weights
    first, second, third = ((weights * service**power).sum(axis=-1) for power in (1, 2, 3))
    rate = loop.arrival_rate_per_s
    spare = np.maximum(1.0 - rate * first, 1e-6)
    mean = rate * second / (2.0 * spare) * lanes.dispersion
    square = 2.0 * mean * mean + rate * third / (3.0 * spare) * lanes.dispersion
    return mean, square - mean * mean


def slot_wait(lanes: Lanes, loop: Loop) -> tuple[Array, Array]:
    """Mean and variance of the wait for a slot or for KV cache. [s], [s^2]"""
    limit = decode_limit(lanes)
    deviation = np.sqrt(concurrency_variance(lanes, loop) + 0.25)
    waiting = special.ndtr((loop.decoding - limit) / deviation)
    spread = deviation / np.maximum(loop.arrival_rate_per_s, TINY)
    mean = waiting * spread
    return mean, 2.0 * waiting * spread * spread - mean * mean


def concurrency_variance(lanes: Lanes, loop: Loop) -> Array:
    """Variance of the number of requests in the batch, N (1 + I) / 2 / (1 - g). [requests^2]"""
    gain = np.minimum(loop.loop_gain, 0.999)
    return loop.decoding * (1.0 + lanes.dispersion) / 2.0 / (1.0 - gain)


def time_to_first_token(lanes: Lanes, loop: Loop) -> Latency:
    """Arrival to first token."""
    own = own_prefill_s(lanes, loop)
    wait, wait_variance = prefill_wait(lanes, loop)
    slot, slot_variance = slot_wait(lanes, loop)
    residual = loop.step_s / 2.0
    shift = lanes.step["request_s"][..., np.newaxis] + own
    variance = wait_variance + slot_variance + loop.step_s**2 / 12.0
    return Latency(
        mean_s=shift + (wait + slot + residual)[..., np.newaxis],
        variance_s2=np.broadcast_to(variance[..., np.newaxis], shift.shape),
        shift_s=shift,
        weights=lanes.kinds.weights,
    )


def time_per_output_token(lanes: Lanes, loop: Loop) -> Latency:
    """Per request: time from first to last token over the number of tokens between."""
    steps = np.maximum(
        (lanes.kinds.output_tokens - 1.0) / lanes.step["tokens_per_step"][..., np.newaxis], 1.0
    )
    token = loop.token_s[..., np.newaxis]
    life = steps * token
    work = prefill_work_s(lanes)
    work_square = (lanes.kinds.weights * work * work).sum(axis=-1)[..., np.newaxis]
    burst = (loop.arrival_rate_per_s * lanes.dispersion)[..., np.newaxis] * work_square * life
    memory = (decode_steps(lanes) * loop.token_s / (1.0 - np.minimum(loop.loop_gain, 0.999)))[
        ..., np.newaxis
    ]
    ratio = life / memory
    averaging = 2.0 / ratio * (1.0 - (1.0 - np.exp(-ratio)) / ratio)
    slope = (loop.step_slope_s / (1.0 - loop.prefill_utilization))[..., np.newaxis]
    drift = slope * slope * concurrency_variance(lanes, loop)[..., np.newaxis] * averaging
    per_token = lanes.step["tokens_per_step"][..., np.newaxis]
    shift = np.broadcast_to(lanes.step["fixed_s"][..., np.newaxis] / per_token * 0.5, ratio.shape)
    return Latency(
        mean_s=np.broadcast_to(token / per_token, ratio.shape),
        variance_s2=(burst / (steps * steps) + drift) / (per_token * per_token),
        shift_s=shift,
        weights=lanes.kinds.weights,
    )


def inter_token_latency(lanes: Lanes, loop: Loop) -> Latency:
    """Per gap between neighbouring tokens."""
    token = loop.token_s[..., np.newaxis]
    work = prefill_work_s(lanes)
    work_square = (lanes.kinds.weights * work * work).sum(axis=-1)[..., np.newaxis]
    burst = loop.arrival_rate_per_s[..., np.newaxis] * work_square * token
    slope = loop.step_slope_s[..., np.newaxis]
    variance = burst + slope * slope * concurrency_variance(lanes, loop)[..., np.newaxis]
    shape = np.broadcast_shapes(token.shape, lanes.kinds.weights.shape)
    return Latency(
        mean_s=np.broadcast_to(token, shape),
        variance_s2=np.broadcast_to(variance, shape),
        shift_s=np.broadcast_to(lanes.step["fixed_s"][..., np.newaxis], shape),
        weights=lanes.kinds.weights,
    )


def end_to_end(lanes: Lanes, loop: Loop) -> Latency:
    """Arrival to last token."""
    first, token = time_to_first_token(lanes, loop), time_per_output_token(lanes, loop)
    gaps = lanes.kinds.output_tokens - 1.0
    return Latency(
        mean_s=first.mean_s + gaps * token.mean_s,
        variance_s2=first.variance_s2 + gaps * gaps * token.variance_s2,
        shift_s=first.shift_s + gaps * token.shift_s,
        weights=lanes.kinds.weights,
    )
