"""The numbers at the end of the demo, and whether it kept what it promises."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fleetline.control.plan import Question, plan
from fleetline.entrypoints.demo.recorder import SECONDS_PER_HOUR, Recorder
from fleetline.entrypoints.demo.scenario import Scenario
from fleetline.errors import ModelError
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

MOST_MISSED_WINDOWS = 1
"""The demo says: every window inside the objective, except at most this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `build/demo/summary.json` holds."""

    windows_met: float
    """Share of windows in which every objective held. 0..1"""
    windows: int
    scale_ups: int
    scale_downs: int
    max_replicas: int
    min_replicas: int
    writes_at_rest: int
    """PATCHes that the API server counted from the operator while the load was steady."""
    gpu_hours: float
    static_peak_gpu_hours: float
    """Of a fleet that has the peak's replicas all day. [h]"""
    requests: int

    @property
    def missed_windows(self) -> int:
        """Windows outside the objective."""
        return round((1 - self.windows_met) * self.windows)

    @property
    def shortfalls(self) -> list[str]:
        """What was promised and not kept, in words; empty if all was."""
        found = []
        if self.missed_windows > MOST_MISSED_WINDOWS:
            found.append(
                f"{self.missed_windows} of {self.windows} windows missed the objective, "
                f"at most {MOST_MISSED_WINDOWS} may"
            )
        if self.gpu_hours >= self.static_peak_gpu_hours:
            found.append(
                f"{self.gpu_hours:.3f} GPU-hours are not below the static fleet's "
                f"{self.static_peak_gpu_hours:.3f}"
            )
        if self.writes_at_rest:
            found.append(f"{self.writes_at_rest} PATCHes at rest, none may be")
        if not self.scale_ups or not self.scale_downs:
            found.append("the fleet was not scaled both ways")
        return found

    def write(self, path: Path) -> None:
        """Write the JSON that scripts read."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def static_peak_replicas(scenario: Scenario, replica: Replica, workload: Workload) -> int:
    """Replicas that a careful person would run all day: the plan for the largest rate."""
    seconds = range(math.ceil(scenario.day.duration_s))
    peak_per_s = max(scenario.day.rate_per_s(second) for second in seconds)
    question = Question(
        replica=replica,
        workload=workload,
        arrival_rate_per_s=peak_per_s,
        objectives=scenario.objectives,
    )
    try:
        return plan(question).replicas
    except ModelError:
        return scenario.max_replicas


def summarize(
    recorder: Recorder,
    *,
    windows_met: Sequence[bool],
    writes_at_rest: int,
    static_replicas: int,
    requests: int,
) -> Summary:
    """Put the summary together; GPU-hours of both fleets are of the day and the night after it."""
    inside = [moment.current_replicas for moment in recorder.moments if moment.t_s >= 0]
    return Summary(
        windows_met=sum(windows_met) / len(windows_met) if windows_met else 0.0,
        windows=len(windows_met),
        scale_ups=recorder.scale_ups,
        scale_downs=recorder.scale_downs,
        max_replicas=max(inside, default=0),
        min_replicas=min(inside, default=0),
        writes_at_rest=writes_at_rest,
        gpu_hours=recorder.gpu_hours(),
        static_peak_gpu_hours=static_replicas * recorder.end_s / SECONDS_PER_HOUR,
        requests=requests,
    )
