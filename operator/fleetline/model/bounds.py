"""What a ceiling may not cross: the objectives of many questions, stacked, and the capacity."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import latency_of
from fleetline.model.loop import Loop
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

MOST_OF_CAPACITY: Final = 0.97
"""Share of capacity above which nobody runs a replica, however patient its objectives are: the
queue still drains, but not within any time that matters."""


METRICS: Final = tuple(Metric)
"""The order of bounds."""
FEWEST: Final = 1e-4
"""Share of requests below which nobody counts those that miss."""


class Limit(StrEnum):
    """What puts the ceiling where it is."""

    TIME_TO_FIRST_TOKEN = "TimeToFirstToken"  # noqa: S105 - a name, not a secret
    TIME_PER_OUTPUT_TOKEN = "TimePerOutputToken"  # noqa: S105
    INTER_TOKEN_LATENCY = "InterTokenLatency"  # noqa: S105
    END_TO_END = "EndToEnd"
    KV_CACHE = "KVCache"
    SLOTS = "Slots"
    PREFILL_COMPUTE = "PrefillCompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One fleet that wants to know its ceiling."""

    replica: Replica
    workload: Workload
    objectives: tuple[Objective, ...]
    replicas: int = 1


def _place(objective: Objective) -> int:
    return METRICS.index(objective.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Objectives of all questions, stacked by metric; questions without one have none to miss."""

    targets: tuple[tuple[Metric, Array, Array], ...]
    """Metric, targets [s] and shares, shape (questions, 1, 1) and (questions, 1)."""

    @classmethod
    def of(cls, questions: Sequence[Question]) -> Self:
        """Stack them; objectives of one metric side by side, as many as one question has."""
        stacked = []
        asked = {one.metric for question in questions for one in question.objectives}
        for metric in (one for one in METRICS if one in asked):
            wanted = [
                [one for one in question.objectives if one.metric is metric]
                for question in questions
            ]
            for place in range(max(map(len, wanted))):
                chosen = [row[place] if place < len(row) else None for row in wanted]
                targets = [np.inf if one is None else one.target_s for one in chosen]
                shares = [0.0 if one is None else one.percentile / 100.0 for one in chosen]
                stacked.append(
                    (metric, np.array(targets)[:, None, None], np.array(shares)[:, None])
                )
        return cls(targets=tuple(stacked))

    @classmethod
    def alone(cls, objectives: Sequence[Objective]) -> Self:
        """Bounds of one question without the axis of questions, as `Lanes.alone`."""
        ordered = sorted(objectives, key=_place)
        numbers = np.array([(one.target_s, one.percentile / 100.0) for one in ordered])
        return cls(
            targets=tuple((one.metric, *pair) for one, pair in zip(ordered, numbers, strict=True))
        )

    def only(self, rows: NDArray[np.intp]) -> Self:
        """Bounds of some questions."""
        return type(self)(
            targets=tuple((one, target[rows], share[rows]) for one, target, share in self.targets)
        )

    def missed(self, lanes: Lanes, loop: Loop, capacity: Array) -> tuple[list[Array], Array]:
        """
        Logarithm of the share that misses over the share that may, above zero where too many do.

        By objective, and last of the rate over the most of capacity; and the mean TTFT. [s]
        Shapes (questions, points).
        """
        found = []
        first = Metric.TIME_TO_FIRST_TOKEN
        latencies = {first: latency_of(first, lanes, loop, capacity)}
        for metric, targets, shares in self.targets:
            if metric not in latencies:
                latencies[metric] = latency_of(metric, lanes, loop, capacity)
            misses = np.maximum(1.0 - latencies[metric].attainment(targets), 0.0)
            found.append(np.log((misses + FEWEST) / (1.0 - shares + FEWEST)))
        found.append(np.log(loop.arrival_rate_per_s / (MOST_OF_CAPACITY * capacity)))
        return found, latencies[first].overall_mean_s()

    def limits(self, lanes: Lanes, missed: NDArray[np.intp]) -> list[Limit]:
        """Name what is missed first in each question: an objective, or what ends capacity."""
        return [
            Limit(self.targets[which][0].value)
            if which < len(self.targets)
            else _end_of_capacity(lanes, row)
            for row, which in enumerate(missed.tolist())
        ]


def _end_of_capacity(lanes: Lanes, row: int) -> Limit:
    limits = (lanes.kv_limit, lanes.max_sequences, lanes.prefill_limit)
    kv, slots, prefill = (limit.reshape(-1)[row] for limit in limits)
    if prefill < min(kv, slots):
        return Limit.PREFILL_COMPUTE
    return Limit.SLOTS if slots <= kv else Limit.KV_CACHE
