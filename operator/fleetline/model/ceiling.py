"""
The ceiling: the largest arrival rate of one replica at which every objective still holds.

The ceiling is set by latency, not by hardware; the limit that binds is named.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.bounds import MOST_OF_CAPACITY, Bounds, Limit, Question
from fleetline.model.lanes import Lanes
from fleetline.model.latency import latency_of
from fleetline.model.loop import open_loop
from fleetline.model.objective import Objective
from fleetline.model.operating_point import check_fit
from fleetline.model.replica import Replica
from fleetline.model.search import LEAST_CONCURRENCY, SEEN, Found, search
from fleetline.model.slots import saturated
from fleetline.model.workload import Workload

__all__ = ["Ceiling", "Limit", "Question", "ceiling", "ceilings"]

CHUNK: Final = 64
"""Questions solved together: their arrays stay in the processor's cache."""


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
    asked = [(one.replica, one.workload, one.replicas) for one in questions]
    if len(questions) == 1:
        lanes, bounds = Lanes.alone(*asked[0]), Bounds.alone(questions[0].objectives)
    else:
        lanes, bounds = Lanes.of(asked), Bounds.of(questions)
    if lanes.kv_limit.min() < 1:
        least = asked[int(np.argmin(lanes.kv_limit))]
        check_fit(least[0], Lanes.of([least]))
    found = search(lanes, bounds)
    limits = bounds.limits(lanes, found.missed)
    return [
        _answer(question, row, found, limits[row])
        if found.possible[row]
        else _unattainable(question)
        for row, question in enumerate(questions)
    ]


def _answer(question: Question, row: int, found: Found, limit: Limit) -> Ceiling:
    """Report one row of the arrays."""
    side = question.replica.lanes
    most = float(found.capacity_per_s[row, 0])
    *logarithms, gain, busy = found.at[-SEEN:-1, row].tolist()
    rate, token_s, first_s = map(math.exp, logarithms)
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


def _unattainable(question: Question) -> Ceiling:
    """Name the objective that even a request alone misses, and what it would see."""
    replica = question.replica
    lanes = Lanes.of([(replica, question.workload, 1)])
    capacity = saturated(lanes).arrival_rate_per_s
    alone = open_loop(lanes, np.array([[LEAST_CONCURRENCY]]))
    worst, worst_ratio, best = question.objectives[0], 0.0, 0.0
    for objective in question.objectives:
        latency = latency_of(objective.metric, lanes, alone, capacity)
        share, target_s = objective.percentile / 100.0, objective.target_s
        if worst_ratio > 1.0 and latency.attainment(target_s)[0, 0] >= share:
            continue  # it is met, and what is worst is not
        seen = float(latency.percentile_s(share)[0, 0])
        if seen / target_s > worst_ratio:
            worst, worst_ratio, best = objective, seen / target_s, seen
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
