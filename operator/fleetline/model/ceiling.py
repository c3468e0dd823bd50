"""
The ceiling: the largest arrival rate of one replica at which every objective still holds.

The ceiling is set by latency, not by hardware; the limit that binds is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fleetline.model.lanes import Array, Lanes
from fleetline.model.latency import latency_of
from fleetline.model.loop import Loop, closed_loop, decode_limit, mean_prefill_work_s, open_loop
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

POINTS = 24
ROUNDS = 3
LEAST_CONCURRENCY = 1e-3


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
    """
    lanes = Lanes.of([(replica, workload, replicas)])
    limit = decode_limit(lanes)
    low, high = np.full_like(limit, LEAST_CONCURRENCY), np.maximum(limit, LEAST_CONCURRENCY)
    if not _met(lanes, open_loop(lanes, low), objectives)[0, 0]:
        return _unattainable(replica, lanes, objectives)
    for _ in range(ROUNDS):
        grid = low * (high / low) ** np.linspace(0.0, 1.0, POINTS)
        met = _met(lanes, open_loop(lanes, grid), objectives)[0]
        last = int(np.argmin(np.append(met, False))) - 1  # noqa: FBT003
        low = grid[:, max(last, 0)][:, np.newaxis]
        high = grid[:, min(last + 1, POINTS - 1)][:, np.newaxis]
    loop = open_loop(lanes, low)
    most = float(closed_loop(lanes, limit).arrival_rate_per_s[0, 0]) * replica.lanes
    rate = min(float(loop.arrival_rate_per_s[0, 0]) * replica.lanes, most)
    token = float(loop.token_s[0, 0]) / replica.tokens_per_step
    first = float(latency_of(Metric.TIME_TO_FIRST_TOKEN, lanes, loop).overall_mean_s()[0, 0])
    residence = first + (workload.lengths.mean_output_tokens - 1.0) * token
    return Ceiling(
        rate_per_s=rate,
        limit=_binding(lanes, open_loop(lanes, high), objectives),
        concurrency=rate * residence,
        residence_time_s=residence,
        loop_gain=float(loop.loop_gain[0, 0]),
        utilization_of_prefill=float(loop.prefill_utilization[0, 0]),
        capacity_per_s=most,
    )


def _met(lanes: Lanes, loop: Loop, objectives: Sequence[Objective]) -> Array:
    met = np.ones(loop.decoding.shape, dtype=bool)
    for objective in objectives:
        share = latency_of(objective.metric, lanes, loop).attainment(objective.target_s)
        met &= share >= objective.percentile / 100.0
    return met


def _binding(lanes: Lanes, beyond: Loop, objectives: Sequence[Objective]) -> Limit:
    for objective in objectives:
        if not _met(lanes, beyond, [objective])[0, 0]:
            return Limit(objective.metric.value)
    if beyond.prefill_utilization[0, 0] > 0.9:
        return Limit.PREFILL_COMPUTE
    by_slots = lanes.max_sequences <= decode_limit(lanes)
    return Limit.SLOTS if by_slots[0, 0] else Limit.KV_CACHE


def _unattainable(replica: Replica, lanes: Lanes, objectives: Sequence[Objective]) -> Ceiling:
    alone = open_loop(lanes, np.array([[LEAST_CONCURRENCY]]))
    for objective in objectives:
        if not _met(lanes, alone, [objective])[0, 0]:
            latency = latency_of(objective.metric, lanes, alone)
            best = float(latency.percentile_s(objective.percentile / 100.0)[0, 0])
            return Ceiling(
                rate_per_s=0.0,
                limit=Limit(objective.metric.value),
                concurrency=0.0,
                residence_time_s=0.0,
                loop_gain=0.0,
                utilization_of_prefill=0.0,
                capacity_per_s=0.0,
                is_attainable=False,
                because=f"{objective} cannot be met: one request alone takes {best:.3g} s "
                f"on {replica.accelerator.name}",
                nearest_target_s=best,
            )
    raise AssertionError(mean_prefill_work_s(lanes))
