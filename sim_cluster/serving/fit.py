"""
Fitting the constants of a step to measured runs, and nothing else.

Open-loop runs are compared request by request: the requests that come while a run fills up show
what a step costs at every concurrency. Closed-loop runs are compared by their means. The cost is
a robust function of the logarithm of simulated over measured, minimized by the simplex method
from several starts (the simulation has jumps, so there are no gradients).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fleetline.model.step_time import StepTime
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.measured import ClosedRun, OpenRun

Floats = NDArray[np.float64]

COEFFICIENTS = (
    "fixed_s",
    "weights_read_s",
    "kv_read_s_per_token",
    "token_compute_s",
    "sequence_s",
    "prefill_token_s",
    "prefill_pair_s",
    "request_s",
)
"""What is fitted; a coefficient that is zero at the start stays zero."""

OPEN_WEIGHT = 16.0
"""Weight of an open-loop run, hundreds of requests, to that of one closed-loop mean."""
CLOSED_FIRST_TOKEN_WEIGHT = 0.3
"""Weight of closed-loop TTFT: clients that start together all wait for each other's prompts."""
OUTLIER = 0.1
"""Logarithm of a ratio beyond which the cost grows only linearly: hiccups of the machine."""
MOST_STEPS = 500
"""Of the simplex method, for each start; later ones change the cost by less than 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Fitted constants and what is left of the cost."""

    step_time: StepTime
    cost: float


def fit(
    starts: Sequence[StepTime],
    limits: EngineLimits,
    *,
    open_runs: Sequence[OpenRun] = (),
    closed_runs: Sequence[ClosedRun] = (),
) -> Fit:
    """Return the best of the fits from several starts."""
    return min(
        (_fit_from(start, limits, open_runs, closed_runs) for start in starts),
        key=lambda one: one.cost,
    )


def cost(
    step_time: StepTime,
    limits: EngineLimits,
    *,
    open_runs: Sequence[OpenRun] = (),
    closed_runs: Sequence[ClosedRun] = (),
) -> float:
    """Say how far a simulation with these constants is from the measured runs."""
    total = 0.0
    for open_run in open_runs:
        seen = open_run.simulate(step_time, limits)
        total += OPEN_WEIGHT * _distance(seen.ttft_s, open_run.ttft_s)
        total += OPEN_WEIGHT * _distance(seen.tpot_s, open_run.tpot_s)
    for closed_run in closed_runs:
        seen = closed_run.simulate(step_time, limits)
        total += _distance(seen.tpot_s.mean(), closed_run.tpot_s)
        total += CLOSED_FIRST_TOKEN_WEIGHT * _distance(seen.ttft_s.mean(), closed_run.ttft_s)
    return total


def _fit_from(
    start: StepTime,
    limits: EngineLimits,
    open_runs: Sequence[OpenRun],
    closed_runs: Sequence[ClosedRun],
) -> Fit:
    names = [name for name in COEFFICIENTS if getattr(start, name) > 0]

    def step_time_of(logs: Floats) -> StepTime:
        values = np.exp(logs).tolist()
        return replace(start, **dict(zip(names, values, strict=True)))

    def cost_of(logs: Floats) -> float:
        return cost(step_time_of(logs), limits, open_runs=open_runs, closed_runs=closed_runs)

    found = minimize(
        cost_of,
        np.log([getattr(start, name) for name in names]),
        method="Nelder-Mead",
        options={"maxiter": MOST_STEPS, "xatol": 1e-3, "fatol": 1e-5, "adaptive": True},
    )
    return Fit(step_time=step_time_of(found.x), cost=float(found.fun))


def _distance(simulated: Floats | float, measured: Floats | float) -> float:
    """Mean pseudo-Huber loss of the log ratio; answers of one token have no TPOT."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.asarray(simulated) / np.asarray(measured))
    known = ratio[np.isfinite(ratio)]
    loss = 2.0 * OUTLIER**2 * (np.sqrt(1.0 + (known / OUTLIER) ** 2) - 1.0)
    return float(loss.mean()) if known.size else 0.0
