"""
What no policy can beat: a schedule made with the true future, and a fluid without whole replicas.

A replica that is removed cannot be back sooner than a start-up takes, so the clairvoyant asks at
each moment for the most that is needed until a replica asked for now would serve.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fleetline.replay.hindsight import best, meets_target
from fleetline.replay.scenario import Scenario, pooled_rate_per_s
from fleetline.replay.score import SECONDS_PER_HOUR
from fleetline.replay.tasks import CLAIRVOYANT, Outcome, Plan, Task

Floats = NDArray[np.float64]

PLAN_PERIOD_S: Final = 15.0
SMOOTHINGS_S: Final = (60.0, 120.0, 300.0, 900.0, 3600.0)
"""Widths of the moving average of the true demand. [s]"""

MARGINS: Final = (
    *(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.84, 0.88, 0.92, 0.95, 0.98, 1.01, 1.04, 1.07),
    *(1.1, 1.13, 1.17, 1.21, 1.26, 1.32, 1.4, 1.5, 1.65, 1.85, 2.1, 2.5, 3.0, 3.7, 4.5, 5.5),
)
"""Factors on it."""

FEW_REPLICAS: Final = 8
"""Up to here the pooled ceiling is computed for each count, beyond on a geometric grid."""


def clairvoyant(scenario: Scenario, perform: Callable[[Sequence[Task]], list[Outcome]]) -> Outcome:
    """
    Find the cheapest schedule that meets the windows target.

    For each smoothing the least margin is found by bisection: more margin misses fewer windows.
    """
    rates = fleet_rates_per_s(scenario)
    found: list[Outcome] = []
    spans = {smoothing_s: (0, len(MARGINS) - 1) for smoothing_s in SMOOTHINGS_S}
    while spans:
        middles = {one: (low + high) // 2 for one, (low, high) in spans.items()}
        outcomes = perform(
            [
                _task(plan(scenario, rates, smoothing_s=one, margin=MARGINS[index]))
                for one, index in middles.items()
            ]
        )
        found += outcomes
        spans = {
            one: _half(spans[one], middle, meets_target(outcome))
            for (one, middle), outcome in zip(middles.items(), outcomes, strict=True)
        }
        spans = {one: span for one, span in spans.items() if span[0] <= span[1]}
    return best(found)


def _half(span: tuple[int, int], middle: int, is_enough: bool) -> tuple[int, int]:  # noqa: FBT001
    return (span[0], middle - 1) if is_enough else (middle + 1, span[1])


def _task(schedule: Plan) -> Task:
    return Task(name=CLAIRVOYANT, policy=CLAIRVOYANT, parameters=schedule)


def plan(scenario: Scenario, rates: Floats, *, smoothing_s: float, margin: float) -> Plan:
    """Make one schedule: what the smoothed true demand will need at most until a start-up ends."""
    demand = smoothed(scenario.trace.rate_per_s(PLAN_PERIOD_S), smoothing_s / PLAN_PERIOD_S)
    needed = 1 + np.searchsorted(rates, margin * demand, side="left")
    bounded = np.clip(needed, scenario.min_replicas, scenario.max_replicas)
    ahead = int(np.ceil(scenario.startup_s / PLAN_PERIOD_S)) + 1
    return Plan(
        counts=coming_maximum(bounded.astype(np.int64), ahead),
        period_s=PLAN_PERIOD_S,
        smoothing_s=smoothing_s,
        margin=margin,
    )


def fleet_rates_per_s(scenario: Scenario) -> Floats:
    """Return what 1, 2, 3, ... replicas carry together, interpolated between a few counts. [1/s]"""
    most = max(1, scenario.max_replicas)
    grid = np.unique(
        np.concatenate(
            (np.arange(1, min(most, FEW_REPLICAS) + 1), np.geomspace(1, most, 9).round())
        )
    )
    each = [pooled_rate_per_s(scenario, int(count)) for count in grid]
    counts = np.arange(1.0, most + 1)
    rates: Floats = np.maximum.accumulate(
        counts * np.interp(counts, [float(one) for one in grid], each)
    )
    return rates


def fluid_gpu_hours(scenario: Scenario) -> float:
    """Integral of demand over the ceiling of a replica in the largest fleet."""
    rate = pooled_rate_per_s(scenario, scenario.max_replicas)
    hours = len(scenario.trace.arrivals) / rate / SECONDS_PER_HOUR
    return hours * scenario.replica.accelerators


def smoothed(rates: Floats, bins: float) -> Floats:
    """Average over a centred window; at the ends over what there is of it."""
    width = max(1, round(bins))
    kernel = np.ones(width)
    counts = np.convolve(np.ones_like(rates), kernel, mode="same")[: rates.size]
    return np.convolve(rates, kernel, mode="same")[: rates.size] / counts


def coming_maximum(values: NDArray[np.int64], ahead: int) -> NDArray[np.int64]:
    """Return for each element the largest of itself and the next `ahead`."""
    padded = np.concatenate((values, np.repeat(values[-1], ahead)))
    maxima: NDArray[np.int64] = sliding_window_view(padded, ahead + 1).max(axis=1)
    return maxima
