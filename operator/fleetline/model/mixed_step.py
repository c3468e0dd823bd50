"""What a step that decodes and prefills takes, on arrays: reading, arithmetic, and what hides."""

from typing import NamedTuple, Self

import numpy as np
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.swing import TINY

BLUNTEST = 1e3
SHARPEST = 1e-4
"""Variance over square of mean of a gamma distribution that is as good as never anything, and as a
fixed number."""
LEAST_FILLED = 1e-3
"""Share of a budget below which a prompt is as good as none. 0..1"""


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


class Chunked(NamedTuple):
    """How prompts are cut into the token budgets of steps, shape (questions, points)."""

    room_tokens: Array
    """What sequences that decode leave of the budget. [tokens]"""
    parts: Array
    """Chunks of a prompt of each kind; shape (questions, points, kinds)."""
    pieces: Array
    """Mean number of chunks of a prompt."""
    filled: Array
    """How far one chunk fills the budget. 0..1"""
    taken: Array
    """Budgets that a prompt fills, all its chunks together."""
    uneven: Array
    """Mean square of a prompt's work over its chunks, over the square of its mean work."""
    single_share: Array
    """How far the steps after the own prompt gather more than those before. 0..1"""

    @classmethod
    def of(cls, lanes: Lanes, decoding: Array) -> Self:
        """Cut them when `decoding` sequences take a token each."""
        room = np.maximum(lanes.step_token_budget - decoding, 1.0)
        parts = np.ceil(lanes.kinds.prompt_tokens / room[..., np.newaxis])
        pieces = mean(lanes, parts)
        filled = np.maximum(lanes.prompt_tokens / (pieces * room), LEAST_FILLED)
        filled2 = filled * filled
        return cls(
            room_tokens=room,
            parts=parts,
            pieces=pieces,
            filled=filled,
            taken=filled * pieces,
            uneven=mean(lanes, lanes.prefill_uneven / parts),
            single_share=1.0 - filled2 * filled2,
        )

    def own_s(self, lanes: Lanes, step_s: Array, gap_s: Array) -> Array:
        """Mean time of the steps that hold the own prompt, as if it were the only one. [s]"""
        return self.pieces * step_s + np.maximum(lanes.work_s - self.pieces * gap_s, 0.0)


class PrefillWork(NamedTuple):
    """
    The prefill work A of a step, beside a gap that hides some of it; shape as the gap's.

    A is a compound Poisson sum of chunks; given A > 0 it is taken as gamma. A chunk that fills the
    budget leaves no room for a second: with filled share f the probability of none is
    (1 - f a)^(1/f), between exp(-a) for small prompts and 1 - a for full steps.
    """

    gap_s: Array
    some: Array
    """Share of steps that hold some, P(A > 0). 0..1"""
    total_s: Array
    """E[A]. [s]"""
    spread: Array
    """Variance over square of mean of A, given A > 0: the inverse of the gamma's shape."""
    hidden: Array
    """The gap in the gamma's scale."""
    behind_s: Array
    """What a gap would take of a step on average if all prompts outlasted it. [s]"""
    beyond: Array
    """P(A > gap | A > 0). 0..1"""
    above: Array
    """E[A; A > gap] over E[A]. 0..1"""

    @classmethod
    def of(cls, lanes: Lanes, gap_s: Array, arrivals: Array, chunked: Chunked) -> Self:
        """Work of `arrivals` prompts a step, above zero."""
        room = np.maximum(1.0 - arrivals * chunked.taken, TINY)
        some = np.maximum(-np.expm1(np.log(room) / chunked.filled), TINY)
        total_s = arrivals * lanes.work_s
        spread = some * (chunked.uneven / arrivals + (1.0 - chunked.filled)) - 1.0
        spread = np.minimum(np.maximum(spread, SHARPEST), BLUNTEST)
        shape, behind_s = 1.0 / spread, some * gap_s
        hidden = behind_s * shape / total_s
        return cls(
            gap_s=gap_s,
            some=some,
            total_s=total_s,
            spread=spread,
            hidden=hidden,
            behind_s=behind_s,
            beyond=special.gammaincc(shape, hidden),
            above=special.gammaincc(shape + 1.0, hidden),
        )

    def extra_s(self) -> Array:
        """Mean time that prefill adds to a step, E[(A - gap)+]. [s]"""
        return np.maximum(self.total_s * self.above - self.behind_s * self.beyond, 0.0)

    def variance_s2(self, extra_s: Array) -> Array:
        """Variance of the time that prefill adds to a step. [s^2]"""
        above, beyond = self.above, self.beyond
        # Q(a + 2, x) = Q(a + 1, x) + x^(a + 1) e^-x / Gamma(a + 2), and a = 1 / spread
        twice = (1.0 + self.spread) * above + (above - beyond) * self.hidden * self.spread
        square = self.total_s * self.total_s / self.some * twice
        cut = self.gap_s * (2.0 * self.total_s * above - self.behind_s * beyond)
        return np.maximum(square - cut - extra_s * extra_s, 0.0)


def mean(lanes: Lanes, values: Array) -> Array:
    """Mean over kinds of requests, the last axis."""
    return np.asarray(np.vecdot(lanes.kinds.weights, values))
