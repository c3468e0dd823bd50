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


@dataclass(frozen=True, slots=True)
class Chunked:
    """How prompts are cut into the token budgets of steps, shape (questions, points)."""

    pieces: Array
    """Mean number of chunks of a prompt."""
    filled: Array
    """How far one chunk fills the budget. 0..1"""
    square_s2: Array
    """Mean square of a prompt's work over its chunks. [s^2]"""

    @classmethod
    def of(cls, lanes: Lanes, decoding: Array) -> Self:
        """Cut them when `decoding` sequences take a token each."""
        budget = np.maximum(lanes.step_token_budget - decoding, 1.0)
        parts = np.ceil(lanes.kinds.prompt_tokens / budget[..., np.newaxis])
        pieces = mean(lanes, parts)
        filled = lanes.prompt_tokens / (pieces * budget)
        return cls(
            pieces=pieces,
            filled=np.minimum(np.maximum(filled, 1e-3), 1.0),
            square_s2=mean(lanes, lanes.prefill_work_s**2 / parts),
        )


def prefill_parts_s(
    lanes: Lanes, gap_s: Array, arrivals: Array, chunked: Chunked
) -> tuple[Array, Array, Array]:
    """
    Mean and variance of what prefill adds to a step, and the share of steps that hold some.

    The work A of a step is a compound Poisson sum of chunks; given A > 0 it is taken as gamma.
    A chunk that fills the budget leaves no room for a second: with filled share f the probability
    of none is (1 - f a)^(1/f), between exp(-a) for small prompts and 1 - a for full steps.
    """
    filled = chunked.filled
    room = np.maximum(1.0 - filled * arrivals * chunked.pieces, TINY)
    some = np.maximum(-np.expm1(np.log(room) / filled), TINY)
    total = arrivals * lanes.work_s
    square = arrivals * chunked.square_s2 + (1.0 - filled) * total * total
    average = np.maximum(total / some, TINY)
    spread = np.maximum(square / some - average * average, 0.0)
    shape = np.minimum(np.maximum(average * average / (spread + TINY * TINY), BLUNTEST), SHARPEST)
    hidden = gap_s * shape / average
    # Q(a + 1, x) = Q(a, x) + x^a e^-x / Gamma(a + 1)
    beyond = special.gammaincc(shape, hidden)
    term = np.exp(special.xlogy(shape, hidden) - hidden - special.gammaln(shape + 1.0))
    above = beyond + term
    twice = above + term * hidden / (shape + 1.0)
    extra = some * np.maximum(average * above - gap_s * beyond, 0.0)
    second = average * average * (1.0 + 1.0 / shape) * twice
    square = some * (second - 2.0 * gap_s * average * above + gap_s * gap_s * beyond)
    return extra, np.maximum(square - extra * extra, 0.0), some


def mean(lanes: Lanes, values: Array) -> Array:
    """Mean over kinds of requests, the last axis."""
    return np.asarray(np.add.reduce(lanes.kinds.weights * values, axis=-1))
