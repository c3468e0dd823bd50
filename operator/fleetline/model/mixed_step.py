"""What a step that decodes and prefills takes, on arrays: reading, arithmetic, and what hides."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.swing import TINY

BLUNTEST = 1e-3
SHARPEST = 1e4
"""Shapes of a gamma distribution that is as good as never anything, and as a fixed number."""


def decode_parts_s(lanes: Lanes, sequences: Array) -> tuple[Array, Array]:
    """
    `StepTime.decode_s` on arrays: step time, and the arithmetic that its reading hides. [s]

    The longer of reading and arithmetic is the arithmetic and what of the reading exceeds it.
    """
    step, read_s = lanes.step, lanes.step["weights_read_s"]
    if lanes.has_experts:
        touched = 1.0 - step["expert_miss_probability"] ** sequences
        read_s = read_s + step["experts_read_s"] * touched
    gap_s = np.maximum(read_s - step["token_compute_s"] * sequences, 0.0)
    return step["fixed_s"] + gap_s + lanes.each_s * sequences, gap_s


@dataclass(frozen=True, slots=True)
class Chunked:
    """How prompts are cut into the token budgets of steps, shape (questions, points)."""

    room_tokens: Array
    """What sequences that decode leave of the budget. [tokens]"""
    parts: Array
    """Chunks of a prompt of each kind; shape (questions, points, kinds)."""
    pieces: Array
    """Mean number of chunks of a prompt."""
    filled: Array
    """How far one chunk fills the budget. 0..1"""
    square_s2: Array
    """Mean square of a prompt's work over its chunks. [s^2]"""

    @classmethod
    def of(cls, lanes: Lanes, decoding: Array) -> Self:
        """Cut them when `decoding` sequences take a token each."""
        room = np.maximum(lanes.step_token_budget - decoding, 1.0)
        parts = np.ceil(lanes.kinds.prompt_tokens / room[..., np.newaxis])
        pieces = mean(lanes, parts)
        filled = lanes.prompt_tokens / (pieces * room)
        return cls(
            room_tokens=room,
            parts=parts,
            pieces=pieces,
            filled=np.minimum(np.maximum(filled, 1e-3), 1.0),
            square_s2=mean(lanes, lanes.prefill_square_s2 / parts),
        )


@dataclass(frozen=True, slots=True)
class PrefillWork:
    """
    The prefill work A of a step, beside a gap that hides some of it; shape as the gap's.

    A is a compound Poisson sum of chunks; given A > 0 it is taken as gamma. A chunk that fills the
    budget leaves no room for a second: with filled share f the probability of none is
    (1 - f a)^(1/f), between exp(-a) for small prompts and 1 - a for full steps.
    """

    gap_s: Array
    some: Array
    """Share of steps that hold some, P(A > 0). 0..1"""
    average_s: Array
    """E[A | A > 0]. [s]"""
    shape: Array
    """Of the gamma distribution."""
    hidden: Array
    """The gap in its scale."""
    beyond: Array
    """P(A > gap | A > 0). 0..1"""
    above: Array
    """E[A; A > gap] over E[A]. 0..1"""

    @classmethod
    def of(cls, lanes: Lanes, gap_s: Array, arrivals: Array, chunked: Chunked) -> Self:
        """Work of `arrivals` prompts a step."""
        filled = chunked.filled
        room = np.maximum(1.0 - arrivals * (filled * chunked.pieces), TINY)
        some = np.maximum(-np.expm1(np.log(room) / filled), TINY)
        total = arrivals * lanes.work_s
        square = arrivals * chunked.square_s2 + total * total * (1.0 - filled)
        average = np.maximum(total / some, TINY)
        average2 = average * average
        spread = np.maximum(square / some - average2, TINY * TINY)
        shape = np.minimum(np.maximum(average2 / spread, BLUNTEST), SHARPEST)
        hidden = gap_s * shape / average
        return cls(
            gap_s=gap_s,
            some=some,
            average_s=average,
            shape=shape,
            hidden=hidden,
            beyond=special.gammaincc(shape, hidden),
            above=special.gammaincc(shape + 1.0, hidden),
        )

    def extra_s(self) -> Array:
        """Mean time that prefill adds to a step, E[(A - gap)+]. [s]"""
        seen_s = self.average_s * self.above - self.gap_s * self.beyond
        return self.some * np.maximum(seen_s, 0.0)

    def variance_s2(self, extra_s: Array) -> Array:
        """Variance of the time that prefill adds to a step. [s^2]"""
        shape, average, gap_s, beyond = self.shape, self.average_s, self.gap_s, self.beyond
        # Q(a + 2, x) = Q(a + 1, x) + x^(a + 1) e^-x / Gamma(a + 2)
        twice = self.above + (self.above - beyond) * self.hidden / (shape + 1.0)
        second = average * average * (1.0 + 1.0 / shape) * twice
        square = second - 2.0 * gap_s * average * self.above + gap_s * gap_s * beyond
        return np.maximum(self.some * square - extra_s * extra_s, 0.0)


def mean(lanes: Lanes, values: Array) -> Array:
    """Mean over kinds of requests, the last axis."""
    return np.asarray(np.vecdot(lanes.kinds.weights, values))
