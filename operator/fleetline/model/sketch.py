"""
A sketch of the ceiling: where a search should look, in numbers rather than arrays.

It is no answer: within 10 % of the requests in the batch at the ceiling for four questions in five,
further off where the lengths of prompts or answers make the tail.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Final

import numpy as np
from scipy import special

from fleetline.model.bounds import MOST_OF_CAPACITY, Bounds
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.objective import Metric
from fleetline.model.sketch_latency import (
    Moments,
    Wanted,
    first_ratio,
    first_token,
    gap_ratio,
    token_ratio,
    whole_ratio,
)
from fleetline.model.sketch_pace import Traits, pace_of
from fleetline.model.swing import TINY

WITH_WAITS: Final = (Metric.TIME_TO_FIRST_TOKEN, Metric.END_TO_END)
CLEARLY: Final = 1.0
"""Standard deviations by which one bound is missed that make others of no interest."""
REACH: Final = 7.0
"""How far below the limit of the batch it looks, in logarithms."""
UPPER: Final = 0.15
"""Part of the way down from the limit of the batch, in logarithms, where a search begins."""
CLOSE: Final = 0.16
"""Width of an interval of logarithms that is narrow enough for a sketch."""
NEAR: Final = 0.14
"""Standard deviations that are as good as none."""
LEAST_CUT: Final = 0.02
"""Least that is cut off an interval of logarithms."""
MOST_CUTS: Final = 12
STEEP: Final = 4.0
"""Standard deviations that a latency usually gains while the rate gains its logarithm: near
capacity."""


def sketch(lanes: Lanes, bounds: Bounds, capacity_per_s: Array) -> Array:
    """Requests in the batch at about the ceiling, shape (questions, 1)."""
    traits = Traits.of(lanes, capacity_per_s)
    wanted: list[list[Wanted]] = [[] for _ in traits]
    for metric, targets, shares in sorted(bounds.targets, key=lambda one: one[0] in WITH_WAITS):
        columns = (targets, 1.0 - shares, special.ndtri(shares))
        rows = zip(*(column.reshape(-1).tolist() for column in columns), strict=True)
        for asked, row in zip(wanted, rows, strict=True):
            if row[0] < np.inf:
                asked.append(Wanted(metric, *row))
    return np.array([[_most_requests(*each)] for each in zip(traits, wanted, strict=True)])


def _most_requests(one: Traits, wanted: Sequence[Wanted]) -> float:
    """
    Where a bound begins to be missed.

    False position (Illinois) between logarithms, on values squashed to -1..1: far from a bound
    they tell no more than on which side of it they are.
    """
    high = log(max(one.most_requests, TINY))
    low, middle = high - REACH, high - UPPER * REACH
    beyond, before, side = _squashed_ratio(_worst_ratio(one, wanted, exp(high))), 0.0, 0
    if beyond <= 0.0:
        return one.most_requests
    for _ in range(MOST_CUTS):
        value = _squashed_ratio(_worst_ratio(one, wanted, exp(middle)))
        if value > 0.0:
            before = 0.5 * before if side > 0 else before
            high, beyond, side = middle, value, 1
        else:
            beyond = 0.5 * beyond if side < 0 else beyond
            low, before, side = middle, value, -1
        if high - low < CLOSE or (before and abs(value) < NEAR):
            break
        part = before / (before - beyond) if before else 0.5
        middle = min(max(low + part * (high - low), low + LEAST_CUT), high - LEAST_CUT)
    return exp(low + (high - low) * before / (before - beyond))


def _squashed_ratio(missed_ratio: float) -> float:
    return missed_ratio / (1.0 + abs(missed_ratio))


def _worst_ratio(one: Traits, wanted: Sequence[Wanted], decoding_requests: float) -> float:
    """By how much the worst bound is missed, in standard deviations of the normal distribution."""
    pace = pace_of(one, decoding_requests)
    worst = STEEP * log(pace.rate_per_s / (MOST_OF_CAPACITY * one.capacity_per_s))
    first: Moments | None = None
    for asked in wanted:
        if worst > CLEARLY:
            break
        if asked.metric is Metric.TIME_PER_OUTPUT_TOKEN:
            missed = token_ratio(one, pace, asked)
        elif asked.metric is Metric.INTER_TOKEN_LATENCY:
            missed = gap_ratio(pace, asked)
        else:
            first = first or first_token(one, pace)
            of = first_ratio if asked.metric is Metric.TIME_TO_FIRST_TOKEN else whole_ratio
            missed = of(one, pace, first, asked)
        worst = max(worst, missed)
    return worst
