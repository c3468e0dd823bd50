"""
The pace of a batch: what a step takes, the prompts that its requests bring, and who meets them.

    a = N / O                        prompts a step: each of N requests leaves after O steps
    tau = t(N) + E[(A - gap)+]       A: prefill work that arrives in a step, gap: what hides it
"""

from typing import NamedTuple, Self

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.mixed_step import Chunked, PrefillWork, decode_parts_s
from fleetline.model.swing import LEAST_PULL, TINY

MOST_BUSY = 0.95
"""Share of a step beyond which the convoy's expansion means nothing."""
MOST_BURSTS = 2.0
"""Dispersion beyond which bursts are longer than the lives that they could crowd."""
LEVELS = 0.4
"""Variance of the number in flight at one of many replicas behind a least-loaded router: two
neighbouring numbers, both likely. [requests^2]"""


class Brought(NamedTuple):
    """The prompts of a step, shape (questions, points)."""

    chunked: Chunked
    own_s: Array
    """Mean time of the steps that hold the own prompt. [s]"""
    offers: Array
    """Prompts a step. [requests]"""
    others_share: Array
    """Share of them that a request meets: not those its own place brings. 0..1"""
    arrivals: Array
    """Prompts a step that a request meets, above zero. [requests]"""

    @classmethod
    def by(
        cls,
        lanes: Lanes,
        present: Array,
        step: tuple[Array, Array],
        *,
        decoding: Array,
        outside: Array | float = 0.0,
    ) -> Self:
        """
        Count what `present` places bring, one each in O steps, while `decoding` take a token each.

        `outside`: how far the next request comes from outside rather than to a place that is free.
        A request meets the prompts of all others: all if they come from outside, (M - 1) / M among
        M places that are filled again and again. `step`: its time and gap. [s]
        """
        step_s, gap_s = step
        chunked = Chunked.of(lanes, decoding)
        own_s = chunked.own_s(lanes, step_s, gap_s)
        offers = present / lanes.decode_steps
        inside = present + offers * own_s / (step_s + offers * lanes.work_s)
        uneven = (1.0 - lanes.coupling) * LEVELS / np.maximum(inside, LEVELS)
        share = 1.0 + (uneven - (1.0 - outside)) / inside
        share = np.minimum(np.maximum(share, TINY), 1.0)
        return cls(chunked, own_s, offers, share, offers * share)


class Calm(NamedTuple):
    """Pace of a batch whose number does not swing, shape (questions, points)."""

    step_s: Array
    """Time of a step that only decodes. [s]"""
    extra_s: Array
    """Mean time that prefill work adds to it. [s]"""
    mean_step_s: Array
    pull: Array
    """How far a step lengthens with the number in the batch, N t'/t."""
    slope_s: Array
    """What one more request in the batch adds to a step. [s]"""
    convoy_share: Array
    brought: Brought

    @classmethod
    def of(cls, lanes: Lanes, offered: Array, met: Array) -> Self:
        """Pace when `offered` bring prompts and a request meets `met`, itself included."""
        met = np.maximum(met, 1.0)
        steps_s, gaps_s = decode_parts_s(lanes, np.array([met, met + 1.0]))
        step = (steps_s[0], gaps_s[0])
        brought = Brought.by(lanes, offered, step, decoding=offered, outside=lanes.outside)
        work = PrefillWork.of(lanes, gaps_s, brought.arrivals, brought.chunked)
        extra_s = work.extra_s()
        whole_s = steps_s + extra_s
        mean_step_s, extra_s = whole_s[0], extra_s[0]
        held = extra_s / mean_step_s
        # The swing of prompts is not in the two levels yet.
        slope_s = (whole_s[1] - mean_step_s) / np.maximum(1.0 - held, LEAST_PULL)
        return cls(
            step_s=steps_s[0],
            extra_s=extra_s,
            mean_step_s=mean_step_s,
            pull=offered * slope_s / mean_step_s,
            slope_s=slope_s,
            convoy_share=convoy_share(lanes, held, brought),
            brought=brought,
        )


class ClosedPace(NamedTuple):
    """Pace of a batch that is always full, shape (questions, points)."""

    step_s: Array
    gap_s: Array
    chunked: Chunked
    own_s: Array
    """Mean time of the steps that hold the own prompt. [s]"""
    rate_per_s: Array
    """What it serves. [1/s]"""

    @classmethod
    def of(cls, lanes: Lanes, decoding: Array) -> Self:
        """Pace when the batch holds exactly `decoding` requests: a request meets one less."""
        step = step_s, gap_s = decode_parts_s(lanes, np.maximum(decoding, 1.0))
        brought = Brought.by(lanes, decoding, step, decoding=decoding)
        work = PrefillWork.of(lanes, gap_s, brought.arrivals, brought.chunked)
        rate_per_s = brought.offers / (step_s + work.extra_s())
        return cls(step_s, gap_s, brought.chunked, brought.own_s, rate_per_s)


def convoy_share(lanes: Lanes, held: Array, brought: Brought) -> Array:
    """
    How much longer the steps of a request are than the mean step, relatively.

    Its own prompt lets arrivals gather behind it. `held`: share of a step that prefill work adds.
    """
    single, arrivals = brought.chunked.single_share, brought.arrivals
    busy = lanes.coupling * np.minimum(held, MOST_BUSY)
    busy2 = busy * busy
    gathering = busy * (1.0 + busy2 * (lanes.work_uneven - 1.0)) / ((1.0 - busy) * (1.0 - busy2))
    alone = held / (arrivals * lanes.decode_steps) * single * gathering
    if lanes.is_poisson:
        return alone
    bursts = np.minimum(lanes.dispersion, MOST_BURSTS)
    regular = np.maximum(1.0 - lanes.dispersion, 0.0)
    return np.asarray(alone * (bursts + regular * np.maximum(1.0 - arrivals, 0.0)))
