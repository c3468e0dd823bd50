"""
What one replica of a fleet takes: the model's ceiling, remembered by everything it depends on.

Ceilings are asked for at a few fleet sizes only and taken at the next smaller one: pooling makes
the ceiling grow with the fleet, so this errs on the safe side by less than the steps differ.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from fleetline.control.shape import Shape, workload_of
from fleetline.model.calibration import CalibrationState, apply
from fleetline.model.ceiling import Ceiling, Question, ceilings
from fleetline.model.objective import Objective
from fleetline.model.replica import Calibration, Replica

FLEET_SIZES: Final = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512, 1024, 4096),
)
"""Fleet sizes at which ceilings are computed."""

GROUPS: Final = (
    (*(size for size in FLEET_SIZES if size <= 20), FLEET_SIZES[-1]),
    tuple(size for size in FLEET_SIZES[:-1] if size > 20),
)
"""Sizes whose ceilings are computed together: a dozen cost hardly more than two one by one."""

FACTOR_STEP: Final = 0.02
"""Calibration factors are rounded to 2 %, so that noise does not ask for new ceilings."""

RELAXED: Final = 1.5
"""An objective that cannot be met is replaced by this multiple of the best there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A replica under a workload and its objectives; immutable and hashable."""

    replica: Replica
    shape: Shape
    objectives: tuple[Objective, ...]
    unattainable: tuple[Objective, ...] = ()
    """Objectives that one request alone would miss; `objectives` holds relaxed ones instead."""
    unattainable_because: str = ""
    nearest_target_s: float | None = None
    _ceilings: dict[int, Ceiling] = field(default_factory=dict, repr=False, compare=False)
    """By fleet size, as far as they were asked for: looking them up anew means hashing all this."""

    @property
    def ample(self) -> Ceiling:
        """Ceiling among many, which share every burst: what fails here, no fleet can meet."""
        return self.ceiling_at(FLEET_SIZES[-1])

    @property
    def smallest(self) -> Ceiling:
        """Ceiling in the smallest fleet that can meet the objectives: bursts may fill one alone."""
        each = (self.ceiling_at(size) for size in FLEET_SIZES)
        return next((one for one in each if one.is_attainable), self.ample)

    def ceiling_at(self, replicas: int) -> Ceiling:
        """Ceiling of one replica among `replicas` behind the router."""
        size = FLEET_SIZES[max(0, bisect_right(FLEET_SIZES, replicas) - 1)]
        known = self._ceilings.get(size)
        if known is None:
            sizes = next(group for group in GROUPS if size in group)
            found = _group(self.replica, self.shape, self.objectives, sizes)
            self._ceilings.update(zip(sizes, found, strict=True))
            known = self._ceilings[size]
        return known


def capacity_of(
    replica: Replica, calibration: CalibrationState, shape: Shape, objectives: tuple[Objective, ...]
) -> Capacity:
    """
    Put together what ceilings depend on; objectives that nothing can meet are relaxed and named.

    Raises
    ------
    ModelError
        If the model does not fit into the replica's memory.
    """
    return _capacity(_rounded(apply(replica, calibration)), shape, objectives)


@lru_cache(maxsize=4096)
def _capacity(learned: Replica, shape: Shape, objectives: tuple[Objective, ...]) -> Capacity:
    capacity = Capacity(replica=learned, shape=shape, objectives=objectives)
    for _ in objectives:
        ample = capacity.ample
        if ample.is_attainable or ample.nearest_target_s is None:
            break
        capacity = _relaxed(capacity, ample)
    return capacity


def _relaxed(capacity: Capacity, ample: Ceiling) -> Capacity:
    """Replace the objective that cannot be met by the nearest that leaves room for load."""
    nearest_s = ample.nearest_target_s or 0.0
    missed = next((one for one in capacity.objectives if str(one.metric) == str(ample.limit)), None)
    if missed is None:
        return capacity
    eased = replace(missed, target_s=nearest_s * RELAXED)
    return replace(
        capacity,
        objectives=tuple(eased if one is missed else one for one in capacity.objectives),
        _ceilings={},
        unattainable=(*capacity.unattainable, missed),
        unattainable_because=capacity.unattainable_because or ample.because,
        nearest_target_s=capacity.nearest_target_s or nearest_s,
    )


@lru_cache(maxsize=2048)
def _group(
    replica: Replica, shape: Shape, objectives: tuple[Objective, ...], sizes: tuple[int, ...]
) -> tuple[Ceiling, ...]:
    workload = workload_of(shape)
    return tuple(
        ceilings(
            [
                Question(replica=replica, workload=workload, objectives=objectives, replicas=size)
                for size in sizes
            ]
        )
    )


def _rounded(replica: Replica) -> Replica:
    calibration = replica.calibration
    request_s = calibration.request_s
    return replace(
        replica,
        calibration=Calibration(
            step=_step(calibration.step),
            sequence=_step(calibration.sequence),
            prefill=_step(calibration.prefill),
            request_s=None if request_s is None else _step(request_s),
        ),
    )


def _step(factor: float) -> float:
    return math.exp(round(math.log(factor) / FACTOR_STEP) * FACTOR_STEP) if factor > 0 else factor
