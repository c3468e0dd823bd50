"""
The workload as a key: rounded, so that ceilings can be remembered, and unrounded by the model.

Lengths are rounded to steps of 5 %: far below what a model or a minute's sample can tell apart.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from fleetline.model.workload import TokenLengths, Workload

STEP: Final = 0.05
"""Relative step of rounded quantities."""

DISPERSIONS: Final = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0)
SHARE_STEPS: Final = 20

PARTS: Final = 8
"""Groups of prompts, and of answers in each. Four of answers hide the shortest, whose few gaps set
the percentiles of TPOT: ceilings were 3 to 9 % off, with eight 1 to 3 %."""

SPREAD: Final = 0.8
"""Standard deviation of the logarithm of lengths while only means are known; medians of published
chat traces lie between 0.6 and 1.1."""

NODES: Final = (-1.85, -0.9, 0.0, 0.9, 1.85)
WEIGHTS: Final = (0.0679, 0.2417, 0.3808, 0.2417, 0.0679)
"""Five points of the standard normal with mean 0 and variance near 1 (midpoint weights)."""

Points = tuple[tuple[float, float, float], ...]
"""(prompt tokens, output tokens, weight) of typical requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What requests look like, rounded and hashable."""

    prompt_tokens: float
    output_tokens: float
    hit_share: float = 0.0
    dispersion: float = 1.0
    points: Points = ()
    """Relative to the means; empty while only the means are known."""


def rounded(value: float) -> float:
    """Round to the next step of 5 %; zero stays zero."""
    return 0.0 if value <= 0 else math.exp(round(math.log(value) / STEP) * STEP)


def rounded_share(share: float) -> float:
    """Round a share to steps of 5 percentage points, within 0 and 0.95."""
    return min(SHARE_STEPS - 1, max(0, round(share * SHARE_STEPS))) / SHARE_STEPS


def rounded_dispersion(dispersion: float) -> float:
    """Nearest of a few indices of dispersion, by ratio."""
    return min(DISPERSIONS, key=lambda step: abs(math.log(step / max(dispersion, 0.1))))


@lru_cache(maxsize=4096)
def workload_of(shape: Shape) -> Workload:
    """Build the model's workload from a rounded shape."""
    points = shape.points or _lognormal()
    prompts = np.array([point[0] for point in points]) * shape.prompt_tokens
    outputs = np.array([point[1] for point in points]) * shape.output_tokens
    weights = np.array([point[2] for point in points])
    prompts, outputs = np.maximum(prompts, 1.0), np.maximum(outputs, 1.0)
    lengths = TokenLengths.of(
        prompts, outputs, weights=weights, cached_prompt_tokens=prompts * shape.hit_share
    )
    return Workload(lengths=lengths, dispersion=shape.dispersion)


def points_of(lengths: TokenLengths) -> Points:
    """Compress a distribution to typical requests, 64 or fewer, relative to its means."""
    order = np.lexsort((lengths.output_tokens, lengths.prompt_tokens))
    points: list[tuple[float, float, float]] = []
    for group in _split(order, lengths.weights[order], PARTS):
        inner = group[np.argsort(lengths.output_tokens[group], kind="stable")]
        for cell in _split(inner, lengths.weights[inner], PARTS):
            weight = float(lengths.weights[cell].sum())
            share = lengths.weights[cell] / weight
            points.append(
                (
                    rounded(float(share @ lengths.prompt_tokens[cell])),
                    rounded(float(share @ lengths.output_tokens[cell])),
                    round(weight, 3),
                )
            )
    total = sum(weight for _, _, weight in points)
    prompt = sum(weight * one for one, _, weight in points) / total
    output = sum(weight * one for _, one, weight in points) / total
    return tuple((one / prompt, two / output, weight / total) for one, two, weight in points)


def _split(
    order: "np.ndarray[tuple[int], np.dtype[np.intp]]",
    weights: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    parts: int,
) -> "list[np.ndarray[tuple[int], np.dtype[np.intp]]]":
    """Cut an ordered selection into parts of about equal weight; empty parts are left out."""
    position = np.cumsum(weights) / weights.sum()
    part = np.minimum(parts - 1, np.floor(position * parts - 1e-9).astype(int))
    return [order[part == index] for index in range(parts) if np.any(part == index)]


@lru_cache(maxsize=1)
def _lognormal() -> Points:
    growth = np.exp(SPREAD * np.array(NODES))
    weights = np.array(WEIGHTS) / sum(WEIGHTS)
    growth /= weights @ growth
    return tuple(
        (float(one), float(two), float(weight_one * weight_two))
        for one, weight_one in zip(growth, weights, strict=True)
        for two, weight_two in zip(growth, weights, strict=True)
    )
