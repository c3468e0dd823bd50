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
from fleetline.model.mixed_step import Chunked, PrefillWork, decode_parts_s
from fleetline.model.once import once
from fleetline.model.pace import Brought, Calm, convoy_share
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
MOST_CONVOY = 1.0
"""Convoy beyond which every step is full of prompts, and no step is longer than another."""


@dataclass(kw_only=True, eq=False)
class Loop:
    """
    State of one lane, shape (questions, points).

    Never changed, but not frozen either: that would make it five times slower to build.
    """

    decoding: Array
    """Mean number of requests in the decode phase, N. [requests]"""
    arrival_rate_per_s: Array
    step_s: Array
    """Mean time of a step that only decodes. [s]"""
    mean_step_s: Array
    """Mean time of a step, prefill work included. [s]"""
    token_slope_s: Array
    """What one more request in the batch adds to a step at a given arrival rate: its reading and
    arithmetic, prompts that hide no more, and those that arrive meanwhile. [s]"""
    pull: Array
    """How far a step lengthens with the number in the batch, N t'/t."""
    levels_s: Array
    """Time of a step at the places of the swing, first axis. [s]"""
    spread_requests2: Array
    """Variance of the number in the batch. [requests^2]"""
    gap_s: Array
    """Arithmetic that hides behind the reading of such a step. [s]"""
    extra_s: Array
    """Mean time that prefill work adds to a step. [s]"""
    held: Array
    """Share of a step that is such time. 0..1"""
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
    chunked: Chunked
    own_prefill_s: Array
    """Mean time of the steps that hold the own prompt. [s]"""
    loop_gain: Array

    @once
    def token_s(self) -> Array:
        """Mean time of the steps that a request goes through. [s]"""
        return self.mean_step_s * (1.0 + self.convoy_share)

    @once
    def inside(self) -> Array:
        """Requests in the batch, those that have no token yet included. [requests]"""
        return self.decoding + self.arrival_rate_per_s * self.own_prefill_s

    @once
    def level_skewness(self) -> Array:
        """Of the step time as the number in the batch swings: negative where it levels off."""
        return skewness(self.levels_s, self.mean_step_s)

    @once
    def level_variance_s2(self) -> Array:
        """Variance of the step time as the number in the batch swings. [s^2]"""
        return self.token_slope_s * self.token_slope_s * self.spread_requests2

    @once
    def seen_s(self) -> Array:
        """What one prompt adds to steps, all its chunks together: the rest of it hides. [s]"""
        return self.extra_s / np.maximum(self.arrival_rate_per_s * self.mean_step_s, TINY)


def full_step_s(lanes: Lanes, loop: Loop) -> Array:
    """Time of a step whose token budget is full of prompts. [s]"""
    full_s = loop.chunked.room_tokens * lanes.prefill_token_s
    return loop.step_s + np.maximum(full_s - loop.gap_s, 0.0)


def open_loop(lanes: Lanes, offered: Array) -> Loop:
    """
    State when each step brings `offered / O` new requests, O steps a request.

    Looked at twice: at the mean, which tells how far the number in the batch swings, and then at
    three places of the swing.
    """
    ratio = variance_ratio(lanes, lanes.decode_steps * lanes.step["fixed_s"])
    calm = Calm.of(lanes, offered, offered + ratio)
    held = calm.extra_s / calm.step_s
    held = held * offered / (held + offered)  # no more can be held than are there
    ratio = variance_ratio(lanes, lanes.decode_steps * calm.mean_step_s, held)
    decoding = offered * (1.0 + np.minimum(calm.convoy_share, MOST_CONVOY))
    spread = spread_requests2(decoding, ratio, calm.pull)
    apart = swing(lanes, decoding, calm.mean_step_s, calm.slope_s, spread)
    return _loop(lanes, decoding, ratio, calm.brought, apart=apart)


def closed_loop(lanes: Lanes, decoding: Array) -> Loop:
    """State when the batch holds exactly `decoding` requests: a request meets one less."""
    step = decode_parts_s(lanes, np.maximum(decoding, 1.0))
    brought = Brought.by(lanes, decoding, step, decoding=decoding)
    return _loop(lanes, decoding, np.zeros_like(decoding), brought)


def observed_loop(lanes: Lanes, decoding: Array, arrival_rate_per_s: Array) -> Loop:
    """State when both the number in the batch and the arrival rate of a lane are measured."""
    ratio = variance_ratio(lanes, decoding / np.maximum(arrival_rate_per_s, TINY))
    step = decode_parts_s(lanes, np.maximum(decoding + ratio, 1.0))
    brought = Brought.by(lanes, decoding, step, decoding=decoding, outside=lanes.outside)
    return _loop(lanes, decoding, ratio, brought, rate_per_s=arrival_rate_per_s)


def _loop(
    lanes: Lanes,
    decoding: Array,
    ratio: Array,
    brought: Brought,
    *,
    rate_per_s: Array | None = None,
    apart: tuple[Array, Array] | None = None,
) -> Loop:
    """
    State of a batch of `decoding` sequences that bring prompts.

    `ratio`: variance over mean of the number if speed did not depend on it.
    `apart`: how far the number met, and relatively the prompts of a step, swing.
    `rate_per_s`: the arrival rate if it is measured; otherwise that of the prompts brought.
    """
    met = np.maximum(decoding + ratio, 1.0)
    if apart is None:
        levels, center, pick = np.array([met, met + 1.0]), 0, _first
    else:
        levels, center, pick = np.maximum(_sides(met, apart[0]), 1.0), 1, middle
    steps_s, gaps_s = decode_parts_s(lanes, levels)
    arrivals, chunked = brought.arrivals, brought.chunked
    if apart is None:
        arrivals_at = np.array([arrivals, arrivals])
    else:
        arrivals_at = _sides(arrivals, arrivals * apart[1])
    work = PrefillWork.of(lanes, gaps_s, arrivals_at, chunked)
    extras_s = work.extra_s()
    levels_s = steps_s + extras_s
    slope_s = (levels_s[-1] - levels_s[0]) / np.maximum(levels[-1] - levels[0], 1.0)
    averaged = (steps_s, gaps_s, extras_s, work.variance_s2(extras_s), work.some)
    step_s, gap_s, extra_s, variance, some = pick(np.array(averaged).swapaxes(0, 1))
    mean_step_s = step_s + extra_s
    held = extra_s / mean_step_s
    if apart is None:  # the swing of prompts is not in the levels yet
        slope_s = slope_s / np.maximum(1.0 - held, LEAST_PULL)
    square = (variance + chunked.filled * (extra_s * extra_s)) / arrivals
    pull = decoding * slope_s / mean_step_s
    # W = O tau, and g = lambda dW/dN = lambda (O t' + d(extra)/da)
    rate = brought.offers / mean_step_s if rate_per_s is None else rate_per_s
    return Loop(
        decoding=decoding,
        arrival_rate_per_s=rate,
        step_s=step_s,
        mean_step_s=mean_step_s,
        token_slope_s=slope_s,
        pull=pull,
        levels_s=levels_s,
        spread_requests2=spread_requests2(decoding, ratio, pull),
        gap_s=gap_s,
        extra_s=extra_s,
        held=held,
        extra_variance_s2=variance,
        others_share=brought.others_share,
        seen_square_s2=square * (lanes.work_uneven / chunked.uneven),
        mixed_share=some,
        convoy_share=convoy_share(lanes, held, brought),
        prefill_utilization=rate * lanes.work_s,
        chunked=chunked,
        own_prefill_s=chunked.own_s(lanes, steps_s[center], gaps_s[center]),
        loop_gain=held + rate * lanes.decode_steps * slope_s * (1.0 - held),
    )


def _sides(center: Array, apart: Array) -> Array:
    """Three places of a swing: below, at, and above its middle."""
    return np.array([center - apart, center, center + apart])


def _first(levels: Array) -> Array:
    return np.asarray(levels[0])
