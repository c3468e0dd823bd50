"""
The decode loop: arrival rate, step time and loop gain at a given number of decoding requests.

    a = N / O (1 + c)                arrivals per step: each of N requests leaves after O steps
    tau = t(N + z) + E[(A - gap)+]   A: prefill work that arrives in a step, gap: what hides it
    lambda = a / tau                 g = lambda dW/dL

A step lasts as long as reading weights and cache, and prefill work that arithmetic has no room
for beside that. An arrival finds N others (arrival theorem); z = 1 for Poisson arrivals. Read in
this direction the arrival rate is an explicit function of N and no fixed point is iterated.
"""

from dataclasses import dataclass

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.mixed_step import Chunked, decode_parts_s, mean, prefill_parts_s
from fleetline.model.swing import (
    LEAST_PULL,
    TINY,
    middle,
    skewness,
    spread_requests2,
    swing,
    variance_ratio,
)

ALMOST_ONE = 0.999
MOST_BUSY = 0.95
"""Share of a step beyond which the convoy's expansion means nothing."""
MOST_CONVOY = 1.0
"""Convoy beyond which every step is full of prompts, and no step is longer than another."""
MOST_BURSTS = 2.0
"""Dispersion beyond which bursts are longer than the lives that they could crowd."""
LEVELS = 0.4
"""Variance of the number in flight at one of many replicas behind a least-loaded router: two
neighbouring numbers, both likely. [requests^2]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """State of one lane, shape (questions, points)."""

    decoding: Array
    """Mean number of requests in the decode phase, N. [requests]"""
    arrival_rate_per_s: Array
    step_s: Array
    """Mean time of a step that only decodes. [s]"""
    token_slope_s: Array
    """What one more request in the batch adds to a step at a given arrival rate: its reading and
    arithmetic, prompts that hide no more, and those that arrive meanwhile. [s]"""
    level_skewness: Array
    """Skewness of the step time as the number in the batch swings: negative where it levels off."""
    spread_requests2: Array
    """Variance of the number in the batch. [requests^2]"""
    gap_s: Array
    """Arithmetic that hides behind the reading of such a step. [s]"""
    extra_s: Array
    """Mean time that prefill work adds to a step. [s]"""
    extra_variance_s2: Array
    others_share: Array
    """Share of the prompts of a step that a request meets: not those its own place brings. 0..1"""
    seen_square_s2: Array
    """Mean square of what one prompt adds to steps, all its chunks together. [s^2]"""
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


def full_step_s(lanes: Lanes, loop: Loop) -> Array:
    """Time of a step whose token budget is full of prompts. [s]"""
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)
    prompts = lanes.kinds.prompt_tokens
    token_s = mean(lanes, lanes.prefill_work_s * prompts) / lanes.prompt_square
    return loop.step_s + np.maximum(budget * token_s - loop.gap_s, 0.0)


def open_loop(lanes: Lanes, offered: Array) -> Loop:
    """
    State when each step brings `offered / O` new requests, O steps a request.

    Looked at twice: at the mean, which tells how far the number in the batch swings, and then at
    three places of the swing.
    """
    ratio = variance_ratio(lanes, lanes.decode_steps * lanes.step["fixed_s"])
    first = _loop(lanes, offered, offered + ratio, ratio, outside=lanes.outside)
    held = first.extra_s / first.step_s
    held = held * offered / (held + offered)  # no more can be held than are there
    ratio = variance_ratio(lanes, lanes.decode_steps * first.mean_step_s, held)
    decoding = offered * (1.0 + np.minimum(first.convoy_share, MOST_CONVOY))
    spread = spread_requests2(decoding, ratio, _pull(first))
    apart = swing(lanes, decoding, first.mean_step_s, first.token_slope_s, spread)
    met, outside = decoding + ratio, lanes.outside
    return _loop(lanes, decoding, met, ratio, offered=offered, outside=outside, apart=apart)


def closed_loop(lanes: Lanes, decoding: Array) -> Loop:
    """State when the batch holds exactly `decoding` requests: a request meets one less."""
    return _loop(lanes, decoding, decoding, np.zeros_like(decoding))


def observed_loop(lanes: Lanes, decoding: Array, arrival_rate_per_s: Array) -> Loop:
    """State when both the number in the batch and the arrival rate of a lane are measured."""
    ratio = variance_ratio(lanes, decoding / np.maximum(arrival_rate_per_s, TINY))
    met, outside = decoding + ratio, lanes.outside
    return _loop(lanes, decoding, met, ratio, outside=outside, rate_per_s=arrival_rate_per_s)


def _loop(
    lanes: Lanes,
    decoding: Array,
    met: Array,
    ratio: Array,
    *,
    offered: Array | None = None,
    rate_per_s: Array | None = None,
    outside: Array | float = 0.0,
    apart: tuple[Array, Array] | None = None,
) -> Loop:
    """
    State of a batch in whose steps a request meets `met` sequences, itself included.

    `ratio`: variance over mean of the number if speed did not depend on it.
    `offered`: as many as bring new prompts, one each in O steps; the batch itself if not given.
    `outside`: how far the next request comes from outside rather than to a place that is free.
    `apart`: how far the number met, and relatively the prompts of a step, swing.
    `rate_per_s`: the arrival rate if it is measured; otherwise that of the prompts brought.
    """
    met = np.maximum(met, 1.0)
    present = decoding if offered is None else offered
    if apart is None:
        levels, center = np.array([met, met + 1.0]), 0
    else:
        levels, center = np.maximum(np.array([met - apart[0], met, met + apart[0]]), 1.0), 1
    steps_s, gaps_s = decode_parts_s(lanes, levels)
    chunked = Chunked.of(lanes, decoding)
    own_s = _own_s(lanes, chunked, (steps_s[center], gaps_s[center]))
    share = others_share(lanes, present, outside, (steps_s[center], own_s))
    offers = present / lanes.decode_steps
    arrivals = brought = offers * share
    if apart is not None:
        fewer = arrivals * apart[1]
        brought = np.array([arrivals - fewer, arrivals, arrivals + fewer])
    work = prefill_parts_s(lanes, gaps_s, brought, chunked)
    whole_s = steps_s + work[0]
    slope_s = (whole_s[-1] - whole_s[0]) / np.maximum(levels[-1] - levels[0], 1.0)
    pick = _first if apart is None else middle
    step_s, gap_s, mean_step_s = pick(steps_s), pick(gaps_s), pick(whole_s)
    extra_s, variance, some = (pick(one) for one in work)
    if apart is None:  # the swing of prompts is not in the levels yet
        slope_s = slope_s / np.maximum(1.0 - extra_s / mean_step_s, LEAST_PULL)
    convoy_s = _convoy_s(lanes, (extra_s, mean_step_s, arrivals, chunked.filled))
    square = (variance + chunked.filled * extra_s**2) / np.maximum(arrivals, TINY)
    # W = O tau, and g = lambda dW/dN = lambda (O t' + d(extra)/da)
    rate = offers / mean_step_s if rate_per_s is None else rate_per_s
    held, pull = extra_s / mean_step_s, rate * lanes.decode_steps * slope_s
    spread = spread_requests2(decoding, ratio, decoding * slope_s / mean_step_s)
    return Loop(
        decoding=decoding,
        arrival_rate_per_s=rate,
        step_s=step_s,
        token_slope_s=slope_s,
        level_skewness=decoding if apart is None else skewness(whole_s, mean_step_s),
        spread_requests2=spread,
        gap_s=gap_s,
        extra_s=extra_s,
        extra_variance_s2=variance,
        others_share=share,
        seen_square_s2=square * lanes.work_square_s2 / chunked.square_s2,
        mixed_share=some,
        convoy_share=convoy_s / mean_step_s,
        prefill_utilization=rate * lanes.work_s,
        chunk_share=chunked.filled,
        own_prefill_s=own_s,
        loop_gain=held + pull * (1.0 - held),
    )


def _own_s(lanes: Lanes, chunked: Chunked, parts_s: tuple[Array, Array]) -> Array:
    """Mean time of the steps that hold the own prompt. [s]"""
    step_s, gap_s = parts_s
    return chunked.pieces * step_s + np.maximum(lanes.work_s - chunked.pieces * gap_s, 0.0)


def closed_pace(lanes: Lanes, decoding: Array) -> tuple[Array, Array]:
    """Rate that a full batch serves, and the requests that are in prefill meanwhile."""
    step_s, gap_s = decode_parts_s(lanes, np.maximum(decoding, 1.0))
    chunked = Chunked.of(lanes, decoding)
    own_s = _own_s(lanes, chunked, (step_s, gap_s))
    share = others_share(lanes, decoding, 0.0, (step_s, own_s))
    brought = decoding / lanes.decode_steps
    rate = brought / (step_s + prefill_parts_s(lanes, gap_s, brought * share, chunked)[0])
    return rate, rate * own_s


def _first(levels: Array) -> Array:
    return np.asarray(levels[0])


def _pull(loop: Loop) -> Array:
    """How far a step lengthens with the number in the batch, N t'/t."""
    return loop.decoding * loop.token_slope_s / loop.mean_step_s


def _convoy_s(lanes: Lanes, seen: tuple[Array, Array, Array, Array]) -> Array:
    """Mean excess of the steps of a request: its own prompt lets arrivals gather behind it. [s]"""
    extra_s, mean_step_s, arrivals, filled = seen
    busy = lanes.coupling * np.minimum(extra_s / mean_step_s, MOST_BUSY)
    work_s = extra_s / np.maximum(arrivals, TINY)
    uneven = lanes.work_square_s2 / lanes.work_s**2 - 1.0
    gathering = busy * (1.0 + busy * busy * uneven) / ((1.0 - busy) ** 2 * (1.0 + busy))
    regular = np.maximum(1.0 - lanes.dispersion, 0.0)
    bursts = np.minimum(lanes.dispersion, MOST_BURSTS) + regular * np.maximum(1.0 - arrivals, 0.0)
    return np.asarray(bursts * (1.0 - filled**4) * work_s / lanes.decode_steps * gathering)


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
    share = (inside + outside + uneven - 1.0) / np.maximum(inside, TINY)
    return np.minimum(np.maximum(share, 0.0), 1.0)
