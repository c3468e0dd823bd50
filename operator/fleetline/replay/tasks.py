"""One run as a value that travels to another process, and what comes back from it."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ManifestError
from fleetline.model.step_time import StepTime
from fleetline.replay.baselines import BASELINES
from fleetline.replay.ours import FleetlinePilot, OurParameters
from fleetline.replay.pilots import BaselinePilot, Pilot, SchedulePilot
from fleetline.replay.run import Run, run
from fleetline.replay.scenario import Scenario
from fleetline.replay.score import Score
from fleetline.replay.series import Series, series_of
from sim_cluster.serving.results import RequestResults

OURS: Final = "fleetline"
CLAIRVOYANT: Final = "clairvoyant"
NAMES: Final = (OURS, *BASELINES)
"""Every policy that the command line knows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A schedule of counts made beforehand, and how it was made."""

    counts: NDArray[np.int64]
    period_s: float
    smoothing_s: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """One policy with one setting."""

    name: str
    """As the result calls it, for instance `kpa` or `kpa@best`."""
    policy: str
    parameters: Any
    is_shown: bool = True
    """Whether the report draws it: its series come back too."""
    wants_requests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What came of a task."""

    task: Task
    score: Score
    series: Series | None = None
    results: RequestResults | None = None

    def as_json(self) -> dict[str, Any]:
        """Present with the keys that scripts rely on; what is not finite is null."""
        one = self.score
        figures = {
            "windows_met": one.windows_met,
            "goodput": one.goodput,
            "gpu_hours": one.gpu_hours,
            "replica_hours": one.replica_hours,
            "scale_actions": one.scale_actions,
            "worst_drain_s": one.worst_drain_s,
            "cost": one.cost_usd,
            "ttft_p95_s": one.ttft_p95_s,
            "tpot_p95_s": one.tpot_p95_s,
        }
        return {
            "name": self.task.name,
            "parameters": plain(self.task.parameters),
            **{key: _finite(value) for key, value in figures.items()},
        }


def perform(task: Task, scenario: Scenario) -> Outcome:
    """Run one task to its end."""
    pilot, scenario = pilot_of(task, scenario)
    done: Run = run(pilot, scenario)
    return Outcome(
        task=task,
        score=done.score,
        series=series_of(done, scenario) if task.is_shown else None,
        results=done.results if task.wants_requests else None,
    )


def pilot_of(task: Task, scenario: Scenario) -> tuple[Pilot, Scenario]:
    """Choose who steers; a clairvoyant also chooses how many replicas there are at first."""
    if isinstance(task.parameters, Plan):
        plan = task.parameters
        first = dataclasses.replace(scenario, initial_replicas=int(plan.counts[0]))
        return SchedulePilot(plan.counts, plan.period_s), first
    if task.policy == OURS:
        parameters = task.parameters or OurParameters()
        return FleetlinePilot(scenario, parameters), scenario
    if task.policy not in BASELINES:
        raise ManifestError(f"policy must be one of {', '.join(NAMES)}, got {task.policy!r}")
    return BaselinePilot(BASELINES[task.policy], task.parameters, scenario), scenario


def plain(parameters: Any) -> dict[str, Any]:
    """Flatten parameters for JSON; arrays and the engine's step time are left out."""
    if not dataclasses.is_dataclass(parameters):
        return {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(parameters):
        value = getattr(parameters, field.name)
        if isinstance(value, (StepTime, np.ndarray)):
            continue
        if dataclasses.is_dataclass(value):
            values[field.name] = plain(value)
        else:
            values[field.name] = value if isinstance(value, (int, str)) else _finite(value)
    return values


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return dict(value) if isinstance(value, Mapping) else value
