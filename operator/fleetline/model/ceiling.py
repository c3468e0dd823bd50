"""
The ceiling: the largest arrival rate of one replica at which every objective still holds.

The ceiling is set by latency, not by hardware; the limit that binds is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ModelError
from fleetline.model.bounds import MOST_OF_CAPACITY, Bounds, Limit, Question
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import latency_of
from fleetline.model.loop import open_loop
from fleetline.model.objective import Objective
from fleetline.model.operating_point import check_fit
from fleetline.model.replica import Replica
from fleetline.model.slots import capacity_per_s, saturated
from fleetline.model.swing import TINY
from fleetline.model.workload import Workload

__all__ = ["Ceiling", "Limit", "Question", "ceiling", "ceilings"]

FIRST_GRID: Final = np.array([0.0, 0.003, 0.015, 0.05, 0.13, 0.27, 0.45, 0.66, 0.84, 1.0])
"""Shares of the limit of the batch, dense where ceilings are; first one request alone."""
SECOND_GRID: Final = np.array([0.17, 0.34, 0.5, 0.66, 0.83])
"""Parts of the way between two points of the first grid."""
INSIDE: Final = (0.03, 0.97)
"""Where between them the first grid may expect the ceiling."""
CHUNK: Final = 64
"""Questions solved together: their arrays stay in the processor's cache."""
LEAST_CONCURRENCY: Final = 1e-3
"""Requests in the batch at which a request is alone. [requests]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """How much load one replica may carry."""

    rate_per_s: float
    """Arrival rate per replica; zero if an objective cannot be met at any rate. [1/s]"""
    limit: Limit
    concurrency: float
    """Requests inside the replica at the ceiling, L. [requests]"""
    residence_time_s: float
    loop_gain: float
    utilization_of_prefill: float
    capacity_per_s: float
    """Rate at which the queue would stop draining. [1/s]"""
    is_attainable: bool = True
    because: str = ""
    nearest_target_s: float | None = None
    """For an objective that cannot be met: what one request alone would see. [s]"""


def ceiling(
    replica: Replica, workload: Workload, objectives: Sequence[Objective], *, replicas: int = 1
) -> Ceiling:
    """
    Largest rate per replica at which every objective holds.

    Parameters
    ----------
    replica, workload, objectives
        What serves, what arrives, and what has to hold.
    replicas
        Replicas behind one least-loaded router: more of them share the fluctuations of load.

    Raises
    ------
    ModelError
        If the model does not fit in memory.
    """
    question = Question(
        replica=replica, workload=workload, objectives=tuple(objectives), replicas=replicas
    )
    return ceilings([question])[0]


def ceilings(questions: Sequence[Question]) -> list[Ceiling]:
    """Solve many at once, one array operation for all of them at each step."""
    found: list[Ceiling] = []
    for start in range(0, len(questions), CHUNK):
        found += _ceilings(questions[start : start + CHUNK])
    return found


def _ceilings(questions: Sequence[Question]) -> list[Ceiling]:
    for question in questions:
        if question.replicas < 1:
            raise ModelError(f"replicas must be >= 1, got {question.replicas}")
    lanes = Lanes.of([(one.replica, one.workload, one.replicas) for one in questions])
    if not (lanes.kv_limit >= 1).all():
        one = questions[int(np.argmin(lanes.kv_limit[:, 0]))]
        check_fit(one.replica, Lanes.of([(one.replica, one.workload, one.replicas)]))
    bounds = Bounds.of(questions)
    capacity = capacity_per_s(lanes)
    found = _search(lanes, bounds, capacity)
    limits = bounds.limits(lanes, found.missed)
    return [
        _answer(question, row, found, limits[row])
        if found.possible[row]
        else _unattainable(question)
        for row, question in enumerate(questions)
    ]


def _answer(question: Question, row: int, found: "_Found", limit: Limit) -> Ceiling:
    """Report one row of the arrays."""
    side = question.replica.lanes
    most = float(found.capacity_per_s[row, 0])
    rate, token_s, first_s, gain, busy = (float(value) for value in found.at[:, row])
    rate = side * min(rate, MOST_OF_CAPACITY * most)
    gaps = question.workload.lengths.mean_output_tokens - 1.0
    residence_s = first_s + gaps * token_s / question.replica.tokens_per_step
    return Ceiling(
        rate_per_s=rate,
        limit=limit,
        concurrency=rate * residence_s,
        residence_time_s=residence_s,
        loop_gain=gain,
        utilization_of_prefill=busy,
        capacity_per_s=most * side,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the search leaves, one element a question."""

    capacity_per_s: Array
    possible: NDArray[np.bool_]
    missed: NDArray[np.intp]
    """Which bound is missed first beyond the ceiling."""
    at: Array
    """Rate, step time, mean TTFT, loop gain, prefill utilization at the ceiling; (5, questions)."""


def _search(lanes: Lanes, bounds: Bounds, capacity: Array) -> _Found:
    """
    Find the most that may be offered, and what is missed beyond.

    One grid over all concurrencies, a second one between the two points of the first where a bound
    begins to be missed, and a straight line between the logarithms of what is missed there. What
    holds at both points is not looked at again.
    """
    most = np.maximum(lanes.batch_limit, 2.0 * LEAST_CONCURRENCY)
    levels = np.maximum(most * FIRST_GRID, LEAST_CONCURRENCY * (1.0 + FIRST_GRID))
    rows = np.arange(levels.shape[0])
    missed, seen = _look(lanes, bounds, capacity, levels)
    possible = np.logical_and.reduce(missed[:, :, 0] <= 0.0, axis=0)
    near, part, which = _crossing(missed, rows)
    far = near + 1
    low, high = np.log(levels[rows, near]), np.log(levels[rows, far])
    inner = np.empty((rows.size, SECOND_GRID.size + 1))
    inner[:, :-1] = SECOND_GRID
    inner[:, -1] = np.minimum(np.maximum(part, INSIDE[0]), INSIDE[1])
    inner.sort(axis=-1)
    inner = np.exp(low[:, np.newaxis] + (high - low)[:, np.newaxis] * inner)
    beyond = missed[:, rows, far]
    over = np.flatnonzero(np.logical_or.reduce(beyond > 0.0, axis=-1))
    if over.size:
        asked = bounds.only(over)
        missed_inside, seen_inside = _look(lanes, asked, capacity, inner)
        missed = _between(missed[over], missed_inside, near, rows)
        seen = _between(seen, seen_inside, near, rows)
        ends = np.logical_or.reduce(beyond > 0.0, axis=0)
        near, part, first = _crossing(missed, rows)
        which = np.where(ends, over[first], which)
    return _Found(
        capacity_per_s=capacity,
        possible=possible,
        missed=which,
        at=(1.0 - part) * seen[:, rows, near] + part * seen[:, rows, near + 1],
    )


def _look(lanes: Lanes, bounds: Bounds, capacity: Array, offered: Array) -> tuple[Array, Array]:
    """
    Logarithm of what is missed over what may be, by bound; and the quantities of `_Found.at`.

    Shapes (bounds, questions, points) and (5, questions, points).
    """
    loop = open_loop(lanes, offered)
    missed, first = bounds.missed(lanes, loop, capacity)
    seen = (loop.arrival_rate_per_s, loop.token_s, first, loop.loop_gain, loop.prefill_utilization)
    return missed, np.array(seen)


def _between(outer: Array, inner: Array, near: NDArray[np.intp], rows: NDArray[np.intp]) -> Array:
    """Put the points of the second grid between the two of the first that enclose them."""
    low, high = outer[:, rows, near], outer[:, rows, near + 1]
    return np.concatenate([low[..., np.newaxis], inner, high[..., np.newaxis]], axis=-1)


def _crossing(
    missed: Array, rows: NDArray[np.intp]
) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
    """Last point before a bound is missed, the part of the way to the next, and which bound."""
    over = np.logical_or.reduce(missed > 0.0, axis=0)
    over[:, -1] = True
    after = np.maximum(np.argmax(over, axis=-1), 1)
    before, beyond = missed[:, rows, after - 1], missed[:, rows, after]
    rise = np.maximum(beyond - before, TINY)
    part = np.minimum(np.maximum(-before / rise, 0.0), 1.0)
    part = np.where(beyond > 0.0, part, 2.0 - beyond)
    which = np.argmin(part, axis=0)
    return after - 1, np.minimum(part[which, rows], 1.0), which


def _unattainable(question: Question) -> Ceiling:
    """Name the objective that even a request alone misses, and what it would see."""
    replica = question.replica
    lanes = Lanes.of([(replica, question.workload, 1)])
    capacity = saturated(lanes).arrival_rate_per_s
    alone = open_loop(lanes, np.array([[LEAST_CONCURRENCY]]))
    worst, worst_ratio, best = question.objectives[0], 0.0, 0.0
    for objective in question.objectives:
        latency = latency_of(objective.metric, lanes, alone, capacity)
        seen = float(latency.percentile_s(objective.percentile / 100.0)[0, 0])
        if seen / objective.target_s > worst_ratio:
            worst, worst_ratio, best = objective, seen / objective.target_s, seen
    return Ceiling(
        rate_per_s=0.0,
        limit=Limit(worst.metric.value),
        concurrency=0.0,
        residence_time_s=0.0,
        loop_gain=0.0,
        utilization_of_prefill=0.0,
        capacity_per_s=float(capacity[0, 0]) * replica.lanes,
        is_attainable=False,
        because=f"{worst} cannot be met: one request alone takes {best:.3g} s "
        f"on {replica.accelerator.name}",
        nearest_target_s=best,
    )
