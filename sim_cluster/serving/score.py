"""
How well a fleet did: windows and requests within the objectives, and what that cost.

A window of five minutes is met when, for each objective, the percentile of the latencies of the
requests that arrived in it is at or below the target. A request that did not finish counts as
missed: its latencies are infinite.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ModelError
from sim_cluster.serving.lives import ReplicaLife
from sim_cluster.serving.results import RequestResults

Floats = NDArray[np.float64]

WINDOW_S = 300.0
SECONDS_PER_HOUR = 3600.0

BACKLOG_S = 1.0
"""A request that waits longer than this stands in a queue; less is the step in progress. [s]"""


class Target(Protocol):
    """An objective: `percentile` of the requests see `metric` at or below `target_s`."""

    @property
    def metric(self) -> str:
        """TimeToFirstToken, TimePerOutputToken, InterTokenLatency or EndToEnd."""

    @property
    def percentile(self) -> int:
        """Share of requests that must meet the target. [%]"""

    @property
    def target_s(self) -> float:
        """Latency that must not be exceeded. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The result of a run."""

    windows: int
    """Five-minute windows in which a request arrived."""
    windows_met: float
    """Share of these in which every percentile objective held; 1 without windows."""
    goodput: float
    """Share of requests that met every target on their own."""
    requests: int
    unfinished: int
    replica_hours: float
    """From creation to end of drain, all replicas together. [h]"""
    gpu_hours: float
    """Replica-hours times accelerators of a replica. [h]"""
    ttft_p95_s: float
    tpot_p95_s: float
    e2e_p95_s: float
    worst_backlog: int
    """Most requests at one moment of those that waited longer than a second for the batch."""
    worst_drain_s: float
    """Longest time in which there always was such a request. [s]"""


def score(
    results: RequestResults,
    lives: Sequence[ReplicaLife],
    objectives: Sequence[Target],
    *,
    end_s: float,
    accelerators_per_replica: int = 1,
) -> Score:
    """Judge a run that was advanced to `end_s`."""
    unfinished = np.isnan(results.e2e_s)
    hours = sum(life.held_s(end_s) for life in lives) / SECONDS_PER_HOUR
    windows = windows_met(results, objectives)
    backlog, drain_s = backlogs(results, end_s=end_s)
    return Score(
        windows=windows.size,
        windows_met=float(windows.mean()) if windows.size else 1.0,
        goodput=goodput(results, objectives),
        requests=results.t_s.size,
        unfinished=int(unfinished.sum()),
        replica_hours=hours,
        gpu_hours=hours * accelerators_per_replica,
        ttft_p95_s=percentile_s(latencies_s(results, "TimeToFirstToken"), 95),
        tpot_p95_s=percentile_s(latencies_s(results, "TimePerOutputToken"), 95),
        e2e_p95_s=percentile_s(latencies_s(results, "EndToEnd"), 95),
        worst_backlog=backlog,
        worst_drain_s=drain_s,
    )


def latencies_s(results: RequestResults, metric: str) -> Floats:
    """
    Return the latency of each request; infinite if it did not finish, NaN if it has none.

    InterTokenLatency is judged by each request's mean gap. Answers of one token have no gap.
    """
    columns = {
        "TimeToFirstToken": results.ttft_s,
        "TimePerOutputToken": results.tpot_s,
        "InterTokenLatency": results.tpot_s,
        "EndToEnd": results.e2e_s,
    }
    if metric not in columns:
        raise ModelError(f"metric must be one of {', '.join(columns)}, got {metric}")
    return np.where(np.isnan(results.e2e_s), math.inf, columns[metric])


def percentile_s(latencies: Floats, percentile: float) -> float:
    """Return a percentile by rank (no interpolation, so that infinity stays apart); NaN if none."""
    known = np.sort(latencies[~np.isnan(latencies)])
    if not known.size:
        return math.nan
    return float(known[max(0, math.ceil(percentile / 100.0 * known.size) - 1)])


def windows_met(results: RequestResults, objectives: Sequence[Target]) -> NDArray[np.bool_]:
    """Say for each window with an arrival, in order, whether every objective held."""
    window = np.floor(results.t_s / WINDOW_S).astype(np.int64)
    _, index, arrived = np.unique(window, return_inverse=True, return_counts=True)
    met = np.ones(arrived.size, np.bool_)
    for objective in objectives:
        latencies = latencies_s(results, objective.metric)
        judged = ~np.isnan(latencies)
        total = np.bincount(index[judged], minlength=arrived.size)
        within = judged & (latencies <= objective.target_s)
        good = np.bincount(index[within], minlength=arrived.size)
        # the percentile by rank is within the target if that many requests are
        met &= good >= np.ceil(objective.percentile / 100.0 * total - 1e-9)
    return met


def goodput(results: RequestResults, objectives: Sequence[Target]) -> float:
    """Share of requests that finished and met every target; 1 without requests."""
    if not results.t_s.size:
        return 1.0
    good = ~np.isnan(results.e2e_s)
    for objective in objectives:
        good &= ~(latencies_s(results, objective.metric) > objective.target_s)
    return float(good.mean())


def backlogs(results: RequestResults, *, end_s: float) -> tuple[int, float]:
    """Return the most requests in queues at once, and the longest time without empty queues. [s]"""
    waited = np.where(np.isnan(results.waiting_s), np.inf, results.waiting_s)
    leaves = np.minimum(results.t_s + waited, end_s)
    held = leaves > results.t_s + BACKLOG_S
    times = np.concatenate((results.t_s[held], leaves[held]))
    steps = np.repeat([1, -1], int(held.sum()))
    order = np.lexsort((-steps, times))
    depth = np.cumsum(steps[order])
    if not depth.size:
        return 0, 0.0
    empty = np.flatnonzero(depth == 0)
    ends = times[order][empty]
    begins = times[order][np.concatenate(([0], empty[:-1] + 1))]
    return int(depth.max()), float((ends - begins).max(initial=0.0))
