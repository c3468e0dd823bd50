"""
Distributions of the four latencies at a given state of the loop.

    TTFT = request + slot wait + prefill wait + own prefill
    TPOT = mean over its decode steps of (step time + prefill work of others)
    E2E  = TTFT + (output tokens - 1) TPOT

Each is a mixture over kinds of requests of a shifted gamma distribution, matched to the mean and
the variance of what varies.
"""

from typing import Final

import numpy as np

from fleetline.model.convoy import convoy_s
from fleetline.model.distribution import Latency, excess_of
from fleetline.model.first_token import own_prefill_s, prefill_wait
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, Loop, full_step_s
from fleetline.model.objective import Metric
from fleetline.model.slots import saturated, slot_wait
from fleetline.model.swing import BURST_S, LEAST_PULL, TINY, later_companions

RARE: Final = 1e-4
"""Probability to wait for a slot below which nobody's percentile sees it."""
SLACK: Final = 2.0
"""Standard deviations of the drift of the batch below which TPOT hardly falls."""


def latency_of(
    metric: Metric, lanes: Lanes, loop: Loop, capacity_per_s: Array | None = None
) -> Latency:
    """Distribution of one metric; `capacity_per_s` of a lane is solved for if it is not given."""
    if metric is Metric.TIME_PER_OUTPUT_TOKEN:
        return time_per_output_token(lanes, loop)
    if metric is Metric.INTER_TOKEN_LATENCY:
        return inter_token_latency(loop)
    if capacity_per_s is None:
        capacity_per_s = saturated(lanes).arrival_rate_per_s
    if metric is Metric.TIME_TO_FIRST_TOKEN:
        return time_to_first_token(lanes, loop, capacity_per_s)
    return end_to_end(lanes, loop, capacity_per_s)


def time_to_first_token(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> Latency:
    """Arrival to first token."""
    own, wait = own_prefill_s(lanes, loop), prefill_wait(lanes, loop)
    shift = lanes.step["request_s"][..., np.newaxis] + own
    excess, variance = wait.mean_s[..., np.newaxis], wait.variance_s2[..., np.newaxis]
    weights = lanes.kinds.weights
    share, slot = slot_wait(lanes, loop, capacity_per_s)
    if share.max() <= RARE:
        return Latency(shift_s=shift, excess_s=excess, variance_s2=variance, weights=weights)
    late, alike = share[..., np.newaxis], np.zeros_like(shift)

    def doubled(prompt: Array, waiting: Array) -> Array:
        return np.concatenate([alike + prompt, alike + waiting], axis=-1)

    return Latency(
        shift_s=doubled(shift, shift),
        excess_s=doubled(excess, excess + slot.mean_s[..., np.newaxis]),
        variance_s2=doubled(variance, variance + slot.variance_s2[..., np.newaxis]),
        weights=doubled(weights * (1.0 - late), weights * late),
    )


def time_per_output_token(lanes: Lanes, loop: Loop) -> Latency:
    """
    Time from first to last token of a request, over the number of tokens between.

    Two things vary: how much prefill of others falls into its life (see `convoy`), and how full
    the batch is while it lives (the drift of N, averaged over a life of T with memory theta).
    """
    convoy, gathered = convoy_s(lanes, loop)
    if not lanes.is_poisson:
        convoy = convoy + _companions_s(lanes, loop)
    drift = _drift_s2(lanes, loop)
    deviation = np.sqrt(drift)
    both = lanes.lives.drift_share * np.sqrt(gathered) * deviation
    variance = gathered + both
    excess = np.maximum(convoy + loop.extra_s[..., np.newaxis], TINY)
    third = 2.0 * gathered * variance / excess
    third = third + _drift_skewness(loop)[..., np.newaxis] * (drift * drift)
    variance = variance + drift
    above = excess_of(variance, third)
    by_step = Latency(
        shift_s=convoy + loop.mean_step_s[..., np.newaxis] - above,
        excess_s=above,
        variance_s2=variance,
        weights=lanes.kinds.weights,
        most_s=SLACK * deviation + full_step_s(lanes, loop)[..., np.newaxis],
    )
    if not lanes.is_speculative:
        return by_step
    return by_step.over(lanes.step["tokens_per_step"][..., np.newaxis])


def _drift_skewness(loop: Loop) -> Array:
    """
    Of the mean step of a life, over the deviation of one step.

    That of the level, and that of counts, both less the longer the life.
    """
    counts = 1.0 / np.sqrt(np.maximum(loop.spread_requests2, 1.0))
    whole = np.maximum(loop.level_variance_s2, TINY * TINY)
    return (loop.level_skewness + counts) / np.sqrt(whole)


def inter_token_latency(loop: Loop) -> Latency:
    """Time of one step that decodes: most hold no prompt, some hold one or more."""
    some = np.minimum(loop.mixed_share, ALMOST_ONE)
    stretch = 1.0 + loop.convoy_share
    plain, extra = loop.step_s, loop.extra_s / np.maximum(some, TINY)
    level = loop.level_variance_s2
    spread = np.maximum(
        loop.extra_variance_s2 / np.maximum(some, TINY) - (1.0 - some) * extra**2, 0
    )
    shift = np.maximum(plain - SLACK * np.sqrt(level), 0.5 * plain)
    above = plain * stretch - shift
    return Latency(
        shift_s=np.stack([shift, shift], axis=-1),
        excess_s=np.stack([above, above + extra * stretch], axis=-1),
        variance_s2=np.stack([level, level + spread], axis=-1),
        weights=np.stack([1.0 - some, some], axis=-1),
    )


def end_to_end(lanes: Lanes, loop: Loop, capacity_per_s: Array) -> Latency:
    """Arrival to last token."""
    first = time_to_first_token(lanes, loop, capacity_per_s)
    token = time_per_output_token(lanes, loop)
    token_s, gaps = token.mean_s, lanes.kinds.output_tokens - 1.0
    repeats = first.shift_s.shape[-1] // token_s.shape[-1]
    unequal = lanes.kinds.output_variance * token_s**2

    def tiled(values: Array) -> Array:
        return np.concatenate([values] * repeats, axis=-1)

    variance = first.variance_s2 + tiled(gaps * gaps * token.variance_s2 + unequal)
    lengths = lanes.kinds.output_third * token_s**3
    third = first.third_s3() + tiled(gaps**3 * token.third_s3() + lengths)
    above = excess_of(variance, third)
    return Latency(
        shift_s=first.mean_s + tiled(gaps * token_s) - above,
        excess_s=above,
        variance_s2=variance,
        weights=first.weights,
    )


def _companions_s(lanes: Lanes, loop: Loop) -> Array:
    """What prompts that come later in the same burst add to a mean step, by kind. [s]"""
    steps = lanes.lives.steps
    later = later_companions(lanes, steps * loop.mean_step_s[..., np.newaxis])
    seen_s = np.minimum(loop.seen_s, lanes.work_s)
    spare = np.maximum(1.0 - lanes.crowding * seen_s / BURST_S, 0.5)
    return later * (seen_s / spare)[..., np.newaxis] / steps


def _drift_s2(lanes: Lanes, loop: Loop) -> Array:
    """
    Variance of a request's mean step time due to the size of the batch during its life.

    A life of n memories averages to 2 / n (1 - (1 - e^-n) / n) of the variance of one step.
    """
    memory = lanes.decode_steps / np.maximum(1.0 - loop.pull, LEAST_PULL)
    lives = lanes.lives.steps / memory[..., np.newaxis]
    averaged = (np.expm1(-lives) + lives) / (lives * lives)
    return (2.0 * loop.level_variance_s2)[..., np.newaxis] * averaged
