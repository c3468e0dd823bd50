"""
The ceiling: the largest arrival rate of one replica at which every objective still holds.

The ceiling is set by latency, not by hardware; the limit that binds is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ModelError
from fleetline.model.lanes import Array, Lanes
from fleetline.model.latency import latency_of, time_to_first_token
from fleetline.model.loop import Loop, open_loop
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import check_fit
from fleetline.model.replica import Replica
from fleetline.model.slots import kv_limit, prefill_limit, saturated
from fleetline.model.workload import Workload

POINTS: Final = 16
ROUNDS: Final = 3
LEAST_CONCURRENCY: Final = 1e-3
"""Requests in the batch at which a request is alone. [requests]"""
MOST_OF_CAPACITY: Final = 0.97
"""Share of capacity above which nobody runs a replica, however patient its objectives are: the
queue still drains, but not within any time that matters."""


class Limit(StrEnum):
    """What puts the ceiling where it is."""

    TIME_TO_FIRST_TOKEN = "TimeToFirstToken"  # noqa: S105 - a name, not a secret
    TIME_PER_OUTPUT_TOKEN = "TimePerOutputToken"  # noqa: S105
    INTER_TOKEN_LATENCY = "InterTokenLatency"
    END_TO_END = "EndToEnd"
    KV_CACHE = "KVCache"
    SLOTS = "Slots"
    PREFILL_COMPUTE = "PrefillCompute"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One fleet that wants to know its ceiling."""

    replica: Replica
    workload: Workload
    objectives: tuple[Objective, ...]
    replicas: int = 1


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
    if not questions:
        return []
    lanes = Lanes.of([(one.replica, one.workload, one.replicas) for one in questions])
    for question in questions:
        if question.replicas < 1:
            raise ModelError(f"replicas must be >= 1, got {question.replicas}")
    if not (kv_limit(lanes) >= 1).all():
        worst = int(np.argmin(kv_limit(lanes)[:, 0]))
        one = questions[worst]
        check_fit(one.replica, Lanes.of([(one.replica, one.workload, one.replicas)]))
    bounds = _Bounds.of(questions)
    most = saturated(lanes)
    capacity = most.arrival_rate_per_s
    low = np.full_like(capacity, LEAST_CONCURRENCY)
    high = np.maximum(most.decoding, 2.0 * LEAST_CONCURRENCY)
    alone = open_loop(lanes, low)
    possible = bounds.met(lanes, alone, capacity)[:, 0]
    low, high = _narrow(lanes, bounds, capacity, (low, high))
    at, beyond = open_loop(lanes, low), open_loop(lanes, high)
    first = time_to_first_token(lanes, at, capacity).overall_mean_s()
    results = []
    for row, question in enumerate(questions):
        if not possible[row]:
            results.append(_unattainable(question))
            continue
        side = question.replica.lanes
        rate = min(float(at.arrival_rate_per_s[row, 0]), MOST_OF_CAPACITY * float(capacity[row, 0]))
        token = float(at.token_s[row, 0]) / question.replica.tokens_per_step
        gaps = question.workload.lengths.mean_output_tokens - 1.0
        residence = float(first[row, 0]) + gaps * token
        results.append(
            Ceiling(
                rate_per_s=rate * side,
                limit=bounds.binding(row, lanes, beyond, capacity),
                concurrency=rate * side * residence,
                residence_time_s=residence,
                loop_gain=float(at.loop_gain[row, 0]),
                utilization_of_prefill=float(at.prefill_utilization[row, 0]),
                capacity_per_s=float(capacity[row, 0]) * side,
            )
        )
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Objectives of all questions, stacked by metric; questions without one have none to miss."""

    targets: tuple[tuple[Metric, Array, Array], ...]
    """Metric, targets [s] and shares, shape (questions, 1, 1) and (questions, 1)."""

    @classmethod
    def of(cls, questions: Sequence[Question]) -> "_Bounds":
        stacked = []
        for metric in Metric:
            wanted = [
                sorted(
                    (one for one in question.objectives if one.metric is metric),
                    key=lambda one: one.percentile,
                )
                for question in questions
            ]
            for place in range(max(map(len, wanted))):
                chosen = [row[place] if place < len(row) else None for row in wanted]
                targets = [np.inf if one is None else one.target_s for one in chosen]
                shares = [0.0 if one is None else one.percentile / 100.0 for one in chosen]
                stacked.append(
                    (
                        metric,
                        np.array(targets)[:, np.newaxis, np.newaxis],
                        np.array(shares)[:, np.newaxis],
                    )
                )
        return cls(targets=tuple(stacked))

    def met(self, lanes: Lanes, loop: Loop, capacity: Array) -> NDArray[np.bool_]:
        """Whether all objectives hold; shape (questions, points)."""
        met = loop.arrival_rate_per_s <= MOST_OF_CAPACITY * capacity
        for metric, targets, shares in self.targets:
            met = met & (latency_of(metric, lanes, loop, capacity).attainment(targets) >= shares)
        return np.asarray(met)

    def binding(self, row: int, lanes: Lanes, beyond: Loop, capacity: Array) -> Limit:
        """What fails first beyond the ceiling."""
        for metric, targets, shares in self.targets:
            reached = latency_of(metric, lanes, beyond, capacity).attainment(targets)
            if reached[row, 0] < shares[row, 0]:
                return Limit(metric.value)
        kv, slots = float(kv_limit(lanes)[row, 0]), float(lanes.max_sequences[row, 0])
        if float(prefill_limit(lanes)[row, 0]) < min(kv, slots):
            return Limit.PREFILL_COMPUTE
        return Limit.SLOTS if slots <= kv else Limit.KV_CACHE


def _narrow(
    lanes: Lanes, bounds: _Bounds, capacity: Array, bracket: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Narrow the bracket of the largest number in the batch at which all objectives hold."""
    low, high = bracket
    share = np.linspace(0.0, 1.0, POINTS)
    rows = np.arange(low.shape[0])
    for _ in range(ROUNDS):
        grid = low * (high / low) ** share
        met = bounds.met(lanes, open_loop(lanes, grid), capacity)
        last = np.where(met.all(axis=1), POINTS - 1, np.argmin(met, axis=1) - 1)
        last = np.clip(last, 0, POINTS - 1)
        low = grid[rows, last][:, np.newaxis]
        high = grid[rows, np.minimum(last + 1, POINTS - 1)][:, np.newaxis]
    return low, high


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
