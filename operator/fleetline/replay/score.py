"""
How a run is judged: windows in which the objectives held, GPU-hours, changes, drain.

An objective holds in a window if its share of the requests that arrived in it met the target; a
request that has not finished has met nothing. Time per output token does not exist for an answer
of one token, which then counts as met.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.model.objective import Metric, Objective
from sim_cluster.serving.lives import ReplicaLife
from sim_cluster.serving.results import RequestResults

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

WINDOW_S: Final = 300.0
GRID_S: Final = 5.0
"""Resolution at which backlogs are followed. [s]"""

SECONDS_PER_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Figures of one run; latencies are infinite if too many requests never finished."""

    windows_met: float
    """Share of 5-minute windows with an arrival in which every objective held. 0..1"""
    goodput: float
    """Share of requests that met all objectives. 0..1"""
    gpu_hours: float
    """Accelerators times hours, from creation to end of drain."""
    replica_hours: float
    scale_actions: int
    worst_drain_s: float
    """Longest stretch with more requests waiting than replicas serving. [s]"""
    cost_usd: float | None
    ttft_p95_s: float
    tpot_p95_s: float


def latency_s(results: RequestResults, metric: Metric) -> Floats:
    """Return a latency of each request: infinite if unfinished, NaN if it does not exist. [s]"""
    unfinished = np.isnan(results.e2e_s)
    if metric is Metric.TIME_TO_FIRST_TOKEN:
        return np.where(np.isnan(results.ttft_s), np.inf, results.ttft_s)
    if metric is Metric.END_TO_END:
        return np.where(unfinished, np.inf, results.e2e_s)
    return np.where(unfinished, np.inf, results.tpot_s)


def met(results: RequestResults, objective: Objective) -> Bools:
    """Tell for each request whether it met a target; an unfinished one has not."""
    values = latency_s(results, objective.metric)
    return (np.isnan(values) | (values <= objective.target_s)) & ~np.isnan(results.e2e_s)


def windows_met(results: RequestResults, objectives: Sequence[Objective]) -> Bools:
    """Tell for each window with an arrival whether every objective held in it."""
    window = (results.t_s // WINDOW_S).astype(np.intp)
    counts = np.bincount(window)
    held = np.ones(counts.size, dtype=bool)
    for objective in objectives:
        good = np.bincount(window, weights=met(results, objective))
        held &= good >= objective.percentile / 100.0 * counts - 1e-9
    return held[counts > 0]


def score(
    results: RequestResults,
    lives: Sequence[ReplicaLife],
    objectives: Sequence[Objective],
    *,
    until_s: float,
    accelerators: int,
    scale_actions: int,
    price_usd_per_hour: float | None,
) -> Score:
    """Judge a run; replicas still alive cost until `until_s`, draining ones until they end."""
    everything = np.logical_and.reduce([met(results, one) for one in objectives])
    held_s = sum(one.held_s(until_s if one.is_alive else math.inf) for one in _ended(lives))
    replica_hours = held_s / SECONDS_PER_HOUR
    gpu_hours = replica_hours * accelerators
    return Score(
        windows_met=float(windows_met(results, objectives).mean()),
        goodput=float(everything.mean()),
        gpu_hours=gpu_hours,
        replica_hours=replica_hours,
        scale_actions=scale_actions,
        worst_drain_s=worst_drain_s(results, lives, until_s),
        cost_usd=None if price_usd_per_hour is None else gpu_hours * price_usd_per_hour,
        ttft_p95_s=percentile_s(latency_s(results, Metric.TIME_TO_FIRST_TOKEN), 95),
        tpot_p95_s=percentile_s(latency_s(results, Metric.TIME_PER_OUTPUT_TOKEN), 95),
    )


def _ended(lives: Sequence[ReplicaLife]) -> list[ReplicaLife]:
    return [one for one in lives if one.is_alive or not math.isnan(one.ended_s)]


def percentile_s(values_s: Floats, percentile: float) -> float:
    """Return a percentile of those that exist; NaN if none does. [s]"""
    kept = values_s[~np.isnan(values_s)]
    if not kept.size:
        return math.nan
    return float(np.quantile(kept, percentile / 100.0, method="higher"))


def waiting_requests(results: RequestResults, grid_s: Floats) -> NDArray[np.int64]:
    """Count the requests that had come and were in no batch yet, at each moment of a grid."""
    waiting = results.waiting_s
    admitted = np.sort(results.t_s + np.where(np.isnan(waiting), np.inf, waiting))
    come = np.searchsorted(results.t_s, grid_s, side="right")
    return come - np.searchsorted(admitted, grid_s, side="right")


def serving_replicas(lives: Sequence[ReplicaLife], grid_s: Floats) -> NDArray[np.int64]:
    """Count the replicas that took requests, at each moment of a grid."""
    ready = np.sort([one.ready_s for one in lives if not math.isnan(one.ready_s)])
    gone = np.sort(
        [
            one.drain_began_s if not math.isnan(one.drain_began_s) else one.ended_s
            for one in lives
            if not math.isnan(one.ready_s) and not one.is_alive
        ]
    )
    return np.searchsorted(ready, grid_s, side="right") - np.searchsorted(
        gone, grid_s, side="right"
    )


def worst_drain_s(results: RequestResults, lives: Sequence[ReplicaLife], until_s: float) -> float:
    """Return the longest stretch with more requests waiting than replicas serving. [s]"""
    grid = np.arange(0.0, until_s + GRID_S, GRID_S)
    behind = waiting_requests(results, grid) > serving_replicas(lives, grid)
    edges = np.diff(np.concatenate(([0], behind.astype(np.int8), [0])))
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return float((ends - begins).max(initial=0) * GRID_S)
