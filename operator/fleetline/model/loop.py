"""
The decode loop: arrival rate, step time and loop gain at a given number of decoding requests.

    a = N / O (1 + c)                arrivals per step: each of N requests leaves after O steps
    tau = t(N + z) + E[(A - gap)+]   A: prefill work that arrives in a step, gap: what hides it
    lambda = a / tau                 g = lambda dW/dL

A step lasts as long as reading weights and cache, and prefill work that arithmetic has no room
for beside that. An arrival finds N others (arrival theorem); z = 1 for Poisson arrivals. Read in
this direction the arrival rate is an explicit function of N and no fixed point is iterated.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes

TINY = 1e-12
ALMOST_ONE = 0.999
MOST_BUSY = 0.95
"""Share of a step beyond which the convoy's expansion means nothing."""
MOST_BURSTS = 2.0
"""Dispersion beyond which bursts are longer than the lives that they could crowd."""
LEVELS = 0.4
"""Variance of the number in flight at one of many replicas behind a least-loaded router: two
neighbouring numbers, both likely. [requests^2]"""
BLUNTEST = 1e-3
SHARPEST = 1e4
"""Shapes of a gamma distribution that is as good as never anything, and as a fixed number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """State of one lane, shape (questions, points)."""

    decoding: Array
    """Mean number of requests in the decode phase, N. [requests]"""
    arrival_rate_per_s: Array
    step_s: Array
    """Mean time of a step that only decodes. [s]"""
    step_slope_s: Array
    """What one more request adds to it. [s]"""
    gap_s: Array
    """Arithmetic that hides behind the reading of such a step. [s]"""
    extra_s: Array
    """Mean time that prefill work adds to a step. [s]"""
    extra_variance_s2: Array
    mixed_share: Array
    """Share of steps that hold prefill work. 0..1"""
    convoy_share: Array
    """How much longer the steps of a request are than the mean step, relatively: a long step
    lets arrivals gather, so the prompts behind a request are as crowded as it was itself."""
    prefill_utilization: Array
    """Share of time that arithmetic works on prompts. 0..1"""
    chunk_share: Array
    """How far one chunk of a prompt fills the token budget of a step. 0..1"""
    own_prefill_s: Array
    """Mean time of the steps that hold the own prompt. [s]"""
    loop_gain: Array

    @property
    def token_s(self) -> Array:
        """Mean time of the steps that a request goes through. [s]"""
        return self.mean_step_s * (1.0 + self.convoy_share)

    @property
    def mean_step_s(self) -> Array:
        """Mean time of a step, prefill work included. [s]"""
        return self.step_s + self.extra_s


def decode_parts_s(lanes: Lanes, sequences: Array) -> tuple[Array, Array]:
    """`StepTime.decode_s` on arrays: step time, and the arithmetic that its reading hides. [s]"""
    step = lanes.step
    touched = 1.0 - step["expert_miss_probability"] ** sequences
    read_s = step["weights_read_s"] + step["experts_read_s"] * touched
    compute_s = step["token_compute_s"] * sequences
    cache_s = (
        step["kv_read_s_per_token"] * lanes.context_tokens
        + step["window_read_s_per_token"] * lanes.window_context_tokens
    )
    dot_s = step["context_compute_s_per_token"] * lanes.context_tokens
    each_s = step["sequence_s"] + np.maximum(cache_s, dot_s)
    step_s = step["fixed_s"] + np.maximum(read_s, compute_s) + each_s * sequences
    return step_s, np.maximum(read_s - compute_s, 0.0)


def chunks(lanes: Lanes, decoding: Array) -> Array:
    """Steps that the prompt of each kind takes; shape (questions, points, kinds)."""
    budget = np.maximum(lanes.step_token_budget - decoding, 1.0)[..., np.newaxis]
    return np.ceil(lanes.kinds.prompt_tokens / budget)


def full_step_s(lanes: Lanes, loop: Loop) -> Array:
    """Time of a step whose token budget is full of prompts. [s]"""
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)
    prompts = lanes.kinds.prompt_tokens
    token_s = mean(lanes, lanes.prefill_work_s * prompts) / lanes.prompt_square
    return loop.step_s + np.maximum(budget * token_s - loop.gap_s, 0.0)


def open_loop(lanes: Lanes, offered: Array) -> Loop:
    """State when each step brings `offered / O` new requests, O steps a request."""
    brought = offered / lanes.decode_steps
    ratio = lanes.variance_ratio
    first = _loop(lanes, offered, offered + ratio, outside=lanes.outside)
    decoding = offered * (1.0 + first.convoy_share)
    loop = _loop(lanes, decoding, decoding + ratio, offered=offered, outside=lanes.outside)
    return _with_rate(lanes, loop, brought / loop.mean_step_s)


def closed_loop(lanes: Lanes, decoding: Array) -> Loop:
    """State when the batch holds exactly `decoding` requests: a request meets one less."""
    loop = _loop(lanes, decoding, decoding)
    return _with_rate(lanes, loop, decoding / lanes.decode_steps / loop.mean_step_s)


def observed_loop(lanes: Lanes, decoding: Array, arrival_rate_per_s: Array) -> Loop:
    """State when both the number in the batch and the arrival rate of a lane are measured."""
    loop = _loop(lanes, decoding, decoding + lanes.variance_ratio, outside=lanes.outside)
    return _with_rate(lanes, loop, arrival_rate_per_s)


def _loop(
    lanes: Lanes,
    decoding: Array,
    met: Array,
    *,
    offered: Array | None = None,
    outside: Array | float = 0.0,
) -> Loop:
    """
    State of a batch in whose steps a request meets `met` sequences, itself included.

    `offered`: as many as bring new prompts, one each in O steps; the batch itself if not given.
    `outside`: how far the next request comes from outside rather than to a place that is free.
    """
    present = decoding if offered is None else offered
    sequences = np.maximum(met, 1.0)
    step_s, gap_s = decode_parts_s(lanes, sequences)
    slope_s = decode_parts_s(lanes, sequences + 1.0)[0] - step_s
    parts = chunks(lanes, decoding)
    pieces = mean(lanes, parts)
    own_s = pieces * step_s + np.maximum(lanes.work_s - pieces * gap_s, 0.0)
    share = others_share(lanes, present, outside, (step_s, own_s))
    arrivals = present / lanes.decode_steps * share
    budget = np.maximum(lanes.step_token_budget - decoding, 1.0)
    filled = np.clip(lanes.prompt_tokens / (pieces * budget), 1e-3, 1.0)
    extra_s, variance, some = _extra(lanes, gap_s, arrivals, (parts, pieces, filled))
    mean_step_s = step_s + extra_s
    busy = lanes.coupling * np.minimum(extra_s / mean_step_s, MOST_BUSY)
    work_s = extra_s / np.maximum(arrivals, TINY)
    uneven = lanes.work_square_s2 / lanes.work_s**2 - 1.0
    gathering = busy * (1.0 + busy * busy * uneven) / ((1.0 - busy) ** 2 * (1.0 + busy))
    regular = np.maximum(1.0 - lanes.dispersion, 0.0)
    bursts = np.minimum(lanes.dispersion, MOST_BURSTS) + regular * np.maximum(1.0 - arrivals, 0.0)
    convoy_s = bursts * (1.0 - filled**4) * work_s / lanes.decode_steps * gathering
    return Loop(
        decoding=decoding,
        arrival_rate_per_s=decoding,
        step_s=step_s,
        step_slope_s=slope_s,
        gap_s=gap_s,
        extra_s=extra_s,
        extra_variance_s2=variance,
        mixed_share=some,
        convoy_share=convoy_s / mean_step_s,
        prefill_utilization=decoding,
        chunk_share=filled,
        own_prefill_s=own_s,
        loop_gain=decoding,
    )


def others_share(
    lanes: Lanes, present: Array, outside: Array | float, times_s: tuple[Array, Array]
) -> Array:
    """
    Share of the prompts of a step that are not brought by the place of the request itself.

    1 if requests come from outside; (M - 1) / M among M places that are filled again and again.
    `times_s` are those of a decode step and of the steps with the own prompt.
    """
    step_s, own_s = times_s
    brought = present / lanes.decode_steps
    inside = present + brought * own_s / (step_s + brought * lanes.work_s)
    uneven = (1.0 - lanes.coupling) * LEVELS / np.maximum(inside, LEVELS)
    return np.clip((inside + outside + uneven - 1.0) / np.maximum(inside, TINY), 0.0, 1.0)


def _with_rate(lanes: Lanes, loop: Loop, rate: Array) -> Loop:
    """Complete a state: W = O tau, so dW/dN = O t' + d(extra)/da, and g = lambda dW/dN."""
    extra_slope_s = loop.extra_s / np.maximum(loop.decoding / lanes.decode_steps, TINY)
    gain = rate * (lanes.decode_steps * loop.step_slope_s + extra_slope_s)
    return replace(
        loop,
        arrival_rate_per_s=rate,
        prefill_utilization=rate * lanes.work_s,
        loop_gain=gain,
    )


def _extra(
    lanes: Lanes, gap_s: Array, arrivals: Array, chunked: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """
    Mean and variance of what prefill adds to a step, and the share of steps that hold some.

    The work A of a step is a compound Poisson sum of chunks; given A > 0 it is taken as gamma.
    A chunk that fills the budget leaves no room for a second: with filled share f the probability
    of none is (1 - f a)^(1/f), between exp(-a) for small prompts and 1 - a for full steps.
    """
    parts, pieces, filled = chunked
    works = lanes.prefill_work_s
    room = np.maximum(1.0 - filled * arrivals * pieces, TINY)
    some = np.maximum(-np.expm1(np.log(room) / filled), TINY)
    total = arrivals * lanes.work_s
    whole = mean(lanes, works * works / parts)
    square = arrivals * whole + (1.0 - filled) * total * total
    average = np.maximum(total / some, TINY)
    spread = np.maximum(square / some - average * average, 0.0)
    shape = np.clip(average * average / (spread + TINY * TINY), BLUNTEST, SHARPEST)
    hidden = gap_s * shape / average
    beyond, above, twice = (special.gammaincc(shape + power, hidden) for power in (0, 1, 2))
    extra = some * np.maximum(average * above - gap_s * beyond, 0.0)
    second = average * average * (1.0 + 1.0 / shape) * twice
    square = some * (second - 2.0 * gap_s * average * above + gap_s * gap_s * beyond)
    return extra, np.maximum(square - extra * extra, 0.0), some


def mean(lanes: Lanes, values: Array) -> Array:
    """Mean over kinds of requests, the last axis."""
    return np.asarray((lanes.kinds.weights * values).sum(axis=-1))
