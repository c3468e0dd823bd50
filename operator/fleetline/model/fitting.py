"""
Calibration on measured rows: the most probable factors of deployments and of shapes of requests.

    minimize  sum ((ln measured - ln predicted) / noise)^2 + sum ((x - x_prior) / spread)^2

x holds the logarithms of the factors of `Calibration`. A deployment starts from the physical
prior, a shape from its deployment, so that a single point moves every factor where it should.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from fleetline.model.calibration import FACTORS, HIGHEST, LOWEST, PRIOR_SPREAD, calibration_of
from fleetline.model.kinds import Array
from fleetline.model.prediction import Case, observe
from fleetline.model.replica import Calibration

SHAPE_SPREAD: Final = (0.08, 0.15, 0.12, 0.3)
"""How much the factors of one shape of requests differ from those of its deployment."""
NOISE: Final = (0.02, 0.05)
"""Relative error of a measured mean TPOT and mean TTFT."""
Key = TypeVar("Key", bound=Hashable)

ITERATIONS: Final = 8
STEP: Final = 1e-3
DAMPING: Final = 0.7
"""Share of a Gauss-Newton step that is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured row: what was asked, and what came out; NaN for what was not measured."""

    case: Case
    deployment: Hashable
    shape: Hashable
    arrival_rate_per_s: float
    time_per_output_token_s: float
    time_to_first_token_s: float

    @property
    def decoding_requests(self) -> float:
        """Requests in the decode phase, Little's law: rate x decode time. [requests]"""
        gaps = max(self.case.workload.lengths.mean_output_tokens - 1.0, 1.0)
        return self.arrival_rate_per_s * gaps * self.time_per_output_token_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What was learned, by deployment and by shape of requests on it."""

    deployments: Mapping[Hashable, Array]
    shapes: Mapping[tuple[Hashable, Hashable], Array]

    def calibration(self, case: Case, deployment: Hashable, shape: Hashable) -> Calibration:
        """Factors of a row: of its shape, else of its deployment, else the prior."""
        found = self.shapes.get((deployment, shape), self.deployments.get(deployment))
        if found is None:
            return case.replica.calibration
        return calibration_of(found, case.replica)


def fit(rows: Sequence[Measured]) -> Factors:
    """Learn factors from measured rows, first for each deployment, then for each shape on it."""
    if not rows:
        return Factors(deployments={}, shapes={})
    deployments = _fit(
        rows, [row.deployment for row in rows], {}, np.array(PRIOR_SPREAD, dtype=np.float64)
    )
    keys = [(row.deployment, row.shape) for row in rows]
    start = {key: deployments[key[0]] for key in keys}
    shapes = _fit(rows, keys, start, np.array(SHAPE_SPREAD, dtype=np.float64))
    return Factors(deployments=deployments, shapes=shapes)


def _fit(
    rows: Sequence[Measured],
    keys: Sequence[Key],
    start: Mapping[Key, Array],
    spread: Array,
) -> dict[Key, Array]:
    """Gauss-Newton steps of all groups side by side."""
    nothing = np.zeros(len(FACTORS))
    prior = {key: start.get(key, nothing) for key in keys}
    factors = dict(prior)
    members: dict[Key, list[int]] = {}
    for index, key in enumerate(keys):
        members.setdefault(key, []).append(index)
    seen = np.log([[row.time_per_output_token_s, row.time_to_first_token_s] for row in rows])
    for _ in range(ITERATIONS):
        expected, slope = _linearized(rows, [factors[key] for key in keys])
        for key, chosen in members.items():
            residual = ((seen - expected)[chosen] / NOISE).ravel()
            known = np.isfinite(residual)
            jacobian = (slope[chosen] / np.array(NOISE)[:, np.newaxis]).reshape(-1, len(FACTORS))
            jacobian, residual = jacobian[known], residual[known]
            pull = (prior[key] - factors[key]) / spread**2
            normal = jacobian.T @ jacobian + np.diag(1.0 / spread**2)
            move = np.linalg.solve(normal, jacobian.T @ residual + pull)
            factors[key] = np.clip(factors[key] + DAMPING * move, np.log(LOWEST), np.log(HIGHEST))
    return factors


def _linearized(rows: Sequence[Measured], factors: Sequence[Array]) -> tuple[Array, Array]:
    """Logarithms of TPOT and TTFT of each row, shape (rows, 2), and slopes (rows, 2, factors)."""
    decoding = np.array([row.decoding_requests for row in rows])
    rates = np.array([row.arrival_rate_per_s for row in rows])
    values = []
    for offset in [np.zeros(len(FACTORS)), *(STEP * np.eye(len(FACTORS)))]:
        cases = [
            replace(
                row.case,
                replica=replace(
                    row.case.replica,
                    calibration=calibration_of(value + offset, row.case.replica),
                ),
            )
            for row, value in zip(rows, factors, strict=True)
        ]
        values.append(np.log(np.stack(observe(cases, decoding, rates), axis=-1)))
    slopes = np.stack([(value - values[0]) / STEP for value in values[1:]], axis=-1)
    return values[0], slopes
