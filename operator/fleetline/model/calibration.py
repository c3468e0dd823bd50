"""
Calibration: a few physical factors, learned online from what Prometheus shows.

    ln y = ln h(x; arrival rate, running) + noise        y: mean ITL, mean TTFT

x holds the logarithms of the factors of `fleetline.model.replica.Calibration`. The filter is an
extended Kalman filter with bounded innovations (Huber): one wild sample moves a factor by a bounded
amount, and the roofline's shape carries what was learned at one load to every other.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import time_to_first_token
from fleetline.model.loop import observed_loop
from fleetline.model.replica import Calibration, Replica
from fleetline.model.roofline import REQUEST_S
from fleetline.model.sample import Sample as Sample  # noqa: PLC0414 - part of this interface
from fleetline.model.sample import refusal
from fleetline.model.slots import saturated
from fleetline.model.workload import Workload

FACTORS: Final = ("step", "sequence", "prefill", "request")
"""Order of the state vector."""

PRIOR_SPREAD: Final = (0.25, 0.5, 0.3, 0.7)
"""Standard deviation of the logarithm of each factor before any sample: the errors of the prior on
models and accelerators that it was not fitted on."""

LOWEST: Final = 0.1
HIGHEST: Final = 10.0
"""Bounds of a factor: beyond them something else is wrong, such as the wrong accelerator."""

NOISE: Final = (0.04, 0.1)
"""Relative error of the mean ITL and the mean TTFT of a long window: that of the model."""

NOISE_OF_ONE: Final = 0.2
"""What a window adds to it that holds a single request; less by the root of their number. The batch
is seen at scrapes only: windows of 80 requests of a real engine at one rate differ by 10 %."""

HUBER: Final = 2.0
"""Innovations beyond this many standard deviations pull with constant force."""

DRIFT_PER_S: Final = 0.02 / math.sqrt(86_400.0)
"""Random walk of the factors: 2 % in a day. [1/sqrt(s)]"""

WAITING_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationState:
    """What was learned; a few numbers that fit into a status."""

    shape: str = ""
    """What the factors belong to; another shape starts from the prior again."""
    log_factors: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    covariance: tuple[float, ...] = tuple(
        float(value) for value in np.diag(np.square(PRIOR_SPREAD)).ravel()
    )
    samples: int = 0
    updated_s: float | None = None
    surprise: float = 1.0
    """Smoothed squared innovation over its expectation: near 1 if the model explains them."""
    refused_because: str = ""

    @property
    def factors(self) -> dict[str, float]:
        """Measured over predicted, by name."""
        return {
            name: math.exp(value) for name, value in zip(FACTORS, self.log_factors, strict=True)
        }

    @property
    def uncertainty(self) -> dict[str, float]:
        """Relative standard deviation of each factor."""
        spread = np.sqrt(np.diag(_matrix(self)))
        return {name: float(value) for name, value in zip(FACTORS, spread, strict=True)}

    @property
    def has_drifted(self) -> bool:
        """Whether recent samples contradict what was learned."""
        return self.surprise > 4.0

    def to_numbers(self) -> dict[str, object]:
        """Serialize for a status; `from_numbers` restores it."""
        return {
            "shape": self.shape,
            "logFactors": [round(value, 5) for value in self.log_factors],
            "covariance": [round(value, 7) for value in self.covariance],
            "samples": self.samples,
            "updated": self.updated_s,
            "surprise": round(self.surprise, 3),
        }


def shape_of(replica: Replica) -> str:
    """Name what factors belong to: model, accelerator, parallelism, precision."""
    return (
        f"{replica.architecture.name}/{replica.accelerator.name}"
        f"/tp{replica.tensor_parallel}pp{replica.pipeline_parallel}dp{replica.data_parallel}"
        f"/{replica.weight_precision}/{replica.kv_precision}"
    )


def prior(replica: Replica, *, spread_factor: float = 1.0) -> CalibrationState:
    """Start from the physical prior; `spread_factor` widens it for an unknown accelerator."""
    variances = np.diag(np.square(np.multiply(PRIOR_SPREAD, spread_factor)))
    return CalibrationState(
        shape=shape_of(replica), covariance=tuple(float(value) for value in variances.ravel())
    )


def apply(replica: Replica, state: CalibrationState) -> Replica:
    """Return the replica with what was learned; unchanged if it was learned for another shape."""
    if state.shape not in ("", shape_of(replica)):
        return replica
    return replace(replica, calibration=calibration_of(np.array(state.log_factors), replica))


def update(
    state: CalibrationState, sample: Sample, replica: Replica, workload: Workload
) -> CalibrationState:
    """
    Learn from one window, or say why not.

    Parameters
    ----------
    state
        What was learned so far.
    sample
        Means over a window of at least `LEAST_REQUESTS` completed requests.
    replica
        The physical prior; its own calibration is ignored.
    workload
        Lengths of the requests of the window.
    """
    if state.shape != shape_of(replica):
        state = prior(replica)
    because = refusal(sample)
    if because:
        return replace(state, refused_because=because)
    mean, covariance = np.array(state.log_factors), _matrix(state)
    elapsed_s = max(
        0.0, sample.at_s - (sample.at_s if state.updated_s is None else state.updated_s)
    )
    covariance = covariance + np.eye(len(FACTORS)) * DRIFT_PER_S**2 * elapsed_s
    measured, noise, which = _measurements(sample)
    expected, jacobian = _linearized(replica, workload, sample, mean)
    innovation = measured - expected[which]
    slope = jacobian[which]
    total = slope @ covariance @ slope.T + np.diag(noise**2)
    surprise = float(innovation @ np.linalg.solve(total, innovation)) / innovation.size
    widened = noise**2 * max(1.0, math.sqrt(surprise) / HUBER) ** 2
    total = slope @ covariance @ slope.T + np.diag(widened)
    gain = np.linalg.solve(total, slope @ covariance).T
    mean = np.clip(mean + gain @ innovation, math.log(LOWEST), math.log(HIGHEST))
    covariance = (np.eye(len(FACTORS)) - gain @ slope) @ covariance
    return CalibrationState(
        shape=state.shape,
        log_factors=tuple(float(value) for value in mean),
        covariance=tuple(float(value) for value in (0.5 * (covariance + covariance.T)).ravel()),
        samples=state.samples + 1,
        updated_s=sample.at_s,
        surprise=0.8 * state.surprise + 0.2 * surprise,
    )


def _measurements(sample: Sample) -> tuple[Array, Array, list[int]]:
    """Logarithms of what was measured, their noise, and which of ITL and TTFT they are."""
    queued = sample.waiting_requests > WAITING_SHARE * max(sample.running_requests, 1.0)
    values = (sample.inter_token_latency_s, None if queued else sample.time_to_first_token_s)
    which = [index for index, value in enumerate(values) if value is not None and value > 0]
    measured = np.log([value for value in values if value is not None and value > 0])
    noise = np.hypot(np.array(NOISE)[which], NOISE_OF_ONE / math.sqrt(max(sample.requests, 1.0)))
    return measured, noise, which


def _linearized(
    replica: Replica, workload: Workload, sample: Sample, log_factors: Array
) -> tuple[Array, Array]:
    """Expected logarithms of mean ITL and mean TTFT, and their derivatives by the factors."""
    step = 1e-3
    points = [log_factors, *(log_factors + step * row for row in np.eye(len(FACTORS)))]
    lanes = Lanes.of(
        [
            (
                replace(replica, calibration=calibration_of(point, replica)),
                workload,
                float(sample.replicas),
            )
            for point in points
        ]
    )
    loop = observed_loop(
        lanes,
        np.full((len(points), 1), sample.running_requests / replica.lanes),
        np.full((len(points), 1), sample.arrival_rate_per_s / replica.lanes),
    )
    token_s = loop.token_s / lanes.step["tokens_per_step"]
    first_s = time_to_first_token(lanes, loop, saturated(lanes).arrival_rate_per_s).overall_mean_s()
    values = np.log(np.concatenate([token_s, first_s], axis=1))
    return values[0], ((values[1:] - values[0]) / step).T


def calibration_of(log_factors: Array, replica: Replica) -> Calibration:
    """Factors of a replica from the state vector."""
    step, sequence, prefill, request = (float(value) for value in np.exp(log_factors))
    outside_s = replica.calibration.request_s
    return Calibration(
        step=step,
        sequence=sequence,
        prefill=prefill,
        request_s=request * (REQUEST_S if outside_s is None else outside_s),
    )


def _matrix(state: CalibrationState) -> Array:
    size = len(FACTORS)
    return np.array(state.covariance).reshape(size, size)


def from_numbers(numbers: dict[str, object]) -> CalibrationState:
    """Restore a state from `CalibrationState.to_numbers`; ModelError if it is not one."""
    try:
        factors = tuple(float(value) for value in numbers["logFactors"])  # type: ignore[attr-defined]
        covariance = tuple(float(value) for value in numbers["covariance"])  # type: ignore[attr-defined]
        updated = numbers.get("updated")
        state = CalibrationState(
            shape=str(numbers["shape"]),
            log_factors=factors,
            covariance=covariance,
            samples=int(str(numbers["samples"])),
            updated_s=None if updated is None else float(str(updated)),
            surprise=float(str(numbers.get("surprise", 1.0))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"calibration must be numbers of an earlier status, got {error}") from None
    if len(factors) != len(FACTORS) or len(covariance) != len(FACTORS) ** 2:
        raise ModelError(f"logFactors must be {len(FACTORS)} numbers, got {len(factors)}")
    return state
