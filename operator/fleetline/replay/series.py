"""A run over time, thin enough to draw: demand, replicas, queue, latency percentiles."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.model.objective import Metric
from fleetline.replay.run import Run
from fleetline.replay.scenario import Scenario
from fleetline.replay.score import (
    WINDOW_S,
    latency_s,
    percentile_s,
    serving_replicas,
    waiting_requests,
)

Floats = NDArray[np.float64]

POINTS: Final = 720
"""Most points of a line: one a minute over 12 hours."""

LEAST_STEP_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """Lines over time; NaN where there is nothing."""

    t_s: Floats
    arrival_rate_per_s: Floats
    serving_replicas: NDArray[np.int64]
    waiting_requests: NDArray[np.int64]
    window_t_s: Floats
    """Middle of each 5-minute window. [s]"""
    time_to_first_token_s: Floats
    """95th percentile of the requests that arrived in each window; infinite: NaN. [s]"""
    time_per_output_token_s: Floats


def series_of(done: Run, scenario: Scenario) -> Series:
    """Thin a run out."""
    end_s = scenario.trace.duration_s
    grid = np.arange(0.0, end_s, max(LEAST_STEP_S, end_s / POINTS))
    step_s = grid[1] - grid[0] if grid.size > 1 else end_s
    come = np.searchsorted(done.results.t_s, np.append(grid, grid[-1] + step_s))
    window = (done.results.t_s // WINDOW_S).astype(np.intp)
    bounds = np.searchsorted(window, np.arange(int(window[-1]) + 2))
    return Series(
        t_s=grid,
        arrival_rate_per_s=np.diff(come) / step_s,
        serving_replicas=serving_replicas(done.lives, grid),
        waiting_requests=waiting_requests(done.results, grid),
        window_t_s=np.arange(0.5, bounds.size - 1) * WINDOW_S,
        time_to_first_token_s=_percentiles(done, Metric.TIME_TO_FIRST_TOKEN, bounds),
        time_per_output_token_s=_percentiles(done, Metric.TIME_PER_OUTPUT_TOKEN, bounds),
    )


def _percentiles(done: Run, metric: Metric, bounds: NDArray[np.intp]) -> Floats:
    values = latency_s(done.results, metric)
    found = np.array(
        [percentile_s(values[begin:end], 95.0) for begin, end in pairwise(bounds.tolist())]
    )
    return np.where(np.isfinite(found), found, np.nan)
