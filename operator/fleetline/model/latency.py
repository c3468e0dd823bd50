"""
Distributions of the four latencies at a given state of the loop.

    TTFT = request + slot wait + prefill wait + own prefill
    TPOT = mean over its decode steps of (step time + prefill work of others)
    E2E  = TTFT + (output tokens - 1) TPOT

Each is a mixture over kinds of requests of a shifted gamma distribution, matched to the mean and
the variance of what varies.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from fleetline.model.convoy import convoy_s
from fleetline.model.first_token import own_prefill_s, prefill_wait
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, TINY, Loop, full_step_s
from fleetline.model.objective import Metric
from fleetline.model.slots import concurrency_variance, saturated, slot_wait

BISECTIONS: Final = 40
FAR: Final = 60.0
"""Standard deviations above the mean that no percentile up to 99.9 reaches."""
RARE: Final = 1e-4
"""Probability to wait for a slot below which nobody's percentile sees it."""
NEAR: Final = 0.05
"""Mean excess over the width between the bounds below which the upper bound does not matter."""
SLACK: Final = 2.0
"""Standard deviations of the drift of the batch below which TPOT hardly falls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One latency, by kind of request: shift + variable part; shape (questions, points, kinds)."""

    mean_s: Array
    variance_s2: Array
    shift_s: Array
    """Below this it cannot fall. [s]"""
    weights: Array
    most_s: Array | None = None
    """Above this it cannot rise, if there is such a bound. [s]"""

    def attainment(self, target_s: Array | float) -> Array:
        """Share of requests at or below a target; shape (questions, points). 0..1"""
        return np.asarray((self.weights * self._below(target_s)).sum(axis=-1))

    def overall_mean_s(self) -> Array:
        """Mean over all requests; shape (questions, points). [s]"""
        return np.asarray((self.weights * self.mean_s).sum(axis=-1))

    def percentile_s(self, share: float) -> Array:
        """Latency that a share (0..1) of requests does not exceed, by bisection. [s]"""
        spread = np.sqrt(self.variance_s2)
        low = np.minimum(self.shift_s, self.mean_s).min(axis=-1)
        high = (self.mean_s + FAR * spread).max(axis=-1) + TINY
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            reached = self.attainment(middle[..., np.newaxis]) >= share
            high = np.where(reached, middle, high)
            low = np.where(reached, low, middle)
        return np.asarray(high)

    def _below(self, target_s: Array | float) -> Array:
        excess = np.maximum(self.mean_s - self.shift_s, TINY)
        variance = np.maximum(self.variance_s2, TINY * TINY)
        rate = excess / variance
        scaled = np.maximum(target_s - self.shift_s, 0.0) * rate
        below: Array = np.asarray(special.gammainc(excess * rate, scaled))
        if self.most_s is None:
            return below
        # Where the upper bound is near, beta instead of gamma: the same moments between bounds.
        width = np.maximum(self.most_s - self.shift_s, 1.02 * excess)
        near = np.broadcast_to(excess > NEAR * width, below.shape)
        if not near.any():
            return below
        middle = np.broadcast_to(excess / width, below.shape)[near]
        spread = np.broadcast_to(variance / (width * width), below.shape)[near]
        part = np.broadcast_to((target_s - self.shift_s) / width, below.shape)[near]
        total = middle * (1.0 - middle) / np.minimum(spread, 0.95 * middle * (1.0 - middle)) - 1.0
        place = np.clip(part, 0.0, 1.0)
        below = np.array(below)
        below[near] = special.betainc(middle * total, (1.0 - middle) * total, place)
        return below


def latency_of(
    metric: Metric, lanes: Lanes, loop: Loop, capacity_per_s: Array | None = None
) -> Latency:
    """Distribution of one metric; `capacity_per_s` of a lane is solved for if it is not given."""
    if metric is Metric.TIME_PER_OUTPUT_TOKEN:
        return time_per_output_token(lanes, loop)
    if metric is Metric.INTER_TOKEN_LATENCY:
        return inter_token_latency(lanes, loop)
    if capacity_per_s is None:
        capacity_per_s = saturated(lanes).arrival_rate_per_s
    if metric is Metric.TIME_TO_FIRST_TOKEN:
        return time_to_first_token(lanes, loop, capacity_per_s)
    return end_to_end(lanes, loop, capacity_per_s)


def time_to_first_token(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> Latency:
    """Arrival to first token."""
    own, wait = own_prefill_s(lanes, loop), prefill_wait(lanes, loop)
    shift = lanes.step["request_s"][..., np.newaxis] + own
    variance = np.broadcast_to(wait.variance_s2[..., np.newaxis], shift.shape)
    average = shift + wait.mean_s[..., np.newaxis]
    weights = np.broadcast_to(lanes.kinds.weights, shift.shape)
    share, slot = slot_wait(lanes, loop, capacity_per_s)
    if not (share > RARE).any():
        return Latency(mean_s=average, variance_s2=variance, shift_s=shift, weights=weights)
    late = share[..., np.newaxis]
    return Latency(
        mean_s=np.concatenate([average, average + slot.mean_s[..., np.newaxis]], axis=-1),
        variance_s2=np.concatenate(
            [variance, variance + slot.variance_s2[..., np.newaxis]], axis=-1
        ),
        shift_s=np.concatenate([shift, shift], axis=-1),
        weights=np.concatenate([weights * (1.0 - late), weights * late], axis=-1),
    )


def time_per_output_token(lanes: Lanes, loop: Loop) -> Latency:
    """
    Time from first to last token of a request, over the number of tokens between.

    Two things vary: how much prefill of others falls into its life (see `convoy`), and how full
    the batch is while it lives (the drift of N, averaged over a life of T with memory theta).
    """
    per_step = lanes.step["tokens_per_step"][..., np.newaxis]
    steps = np.maximum((lanes.kinds.output_tokens - 1.0) / per_step, 1.0)
    convoy, gathered = convoy_s(lanes, loop, steps)
    token = loop.mean_step_s[..., np.newaxis] + convoy
    drift = _drift_s2(lanes, loop, steps)
    floor = np.maximum(loop.step_s[..., np.newaxis] - SLACK * np.sqrt(drift), 0.0)
    return Latency(
        mean_s=token / per_step,
        variance_s2=(gathered + drift + np.sqrt(gathered * drift)) / per_step**2,
        shift_s=np.minimum(floor, 0.98 * token) / per_step,
        weights=lanes.kinds.weights,
        most_s=(full_step_s(lanes, loop)[..., np.newaxis] + SLACK * np.sqrt(drift)) / per_step,
    )


def inter_token_latency(lanes: Lanes, loop: Loop) -> Latency:
    """Time of one step that decodes: most hold no prompt, some hold one or more."""
    some = np.minimum(loop.mixed_share, ALMOST_ONE)
    stretch = 1.0 + loop.convoy_share
    plain, extra = loop.step_s, loop.extra_s / np.maximum(some, TINY)
    level = loop.step_slope_s**2 * concurrency_variance(lanes, loop)
    spread = np.maximum(
        loop.extra_variance_s2 / np.maximum(some, TINY) - (1.0 - some) * extra**2, 0
    )
    shift = np.maximum(plain - SLACK * np.sqrt(level), 0.5 * plain)
    return Latency(
        mean_s=np.stack([plain * stretch, (plain + extra) * stretch], axis=-1),
        variance_s2=np.stack([level, level + spread], axis=-1),
        shift_s=np.stack([shift, shift], axis=-1),
        weights=np.stack([1.0 - some, some], axis=-1),
    )


def end_to_end(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> Latency:
    """Arrival to last token."""
    first, token = (
        time_to_first_token(lanes, loop, capacity_per_s),
        time_per_output_token(lanes, loop),
    )
    repeats = first.mean_s.shape[-1] // token.mean_s.shape[-1]
    gaps = lanes.kinds.output_tokens - 1.0

    unequal = lanes.kinds.output_variance * token.mean_s**2

    def tiled(values: Array) -> Array:
        return np.concatenate([values] * repeats, axis=-1)

    return Latency(
        mean_s=first.mean_s + tiled(gaps * token.mean_s),
        variance_s2=first.variance_s2 + tiled(gaps * gaps * token.variance_s2 + unequal),
        shift_s=first.shift_s + tiled(gaps * token.shift_s),
        weights=first.weights,
    )


def _drift_s2(lanes: Lanes, loop: Loop, steps: Array) -> Array:
    """Variance of a request's mean step time due to the size of the batch during its life."""
    memory = lanes.decode_steps / (1.0 - np.minimum(loop.loop_gain, ALMOST_ONE))
    ratio = np.maximum(steps / memory[..., np.newaxis], TINY)
    averaged = 2.0 / ratio * (1.0 + np.expm1(-ratio) / ratio)
    slope = loop.step_slope_s * loop.mean_step_s / loop.step_s
    return np.asarray((slope**2 * concurrency_variance(lanes, loop))[..., np.newaxis] * averaged)
