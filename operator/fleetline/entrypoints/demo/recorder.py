"""What happened in the demo, second by second: load, latencies, replicas and decisions."""

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One second; None is what is not known."""

    t_s: float
    arrival_rate_per_s: float
    waiting_requests: int
    running_requests: int
    first_token_p95_s: float | None
    output_token_p95_s: float | None
    pods: int
    """Pods that hold accelerators: starting, ready and draining."""
    ready_replicas: int
    current_replicas: int
    desired_replicas: float | None
    ceiling_per_s: float | None
    """Of one replica. [1/s]"""
    expected_rate_per_s: float | None
    """What the operator expects by the time a new replica would serve. [1/s]"""
    utilization: float | None
    loop_gain: float | None
    reason: str
    because: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth a line."""

    t_s: float
    text: str


@dataclass(slots=True)
class Recorder:
    """Grows by one moment a second; counts changes of the target's replicas."""

    moments: list[Moment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    scale_ups: int = 0
    scale_downs: int = 0

    def note(self, t_s: float, text: str) -> Event:
        """Keep a line."""
        event = Event(t_s, text)
        self.events.append(event)
        return event

    def take(self, moment: Moment) -> Event | None:
        """Keep a moment; return the event if the target's replicas changed."""
        before = self.moments[-1] if self.moments else None
        self.moments.append(moment)
        if before is None or before.current_replicas == moment.current_replicas:
            return None
        up = moment.current_replicas > before.current_replicas
        self.scale_ups += up
        self.scale_downs += not up
        because = f" ({moment.reason}): {moment.because}" if moment.reason else ""
        change = f"{before.current_replicas} -> {moment.current_replicas}"
        return self.note(moment.t_s, f"{'up' if up else 'down'}  {change}{because}")

    def write(self, path: Path) -> None:
        """Write the seconds as CSV, the numbers behind the plots; empty is what is not known."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=[field.name for field in fields(Moment)])
            writer.writeheader()
            writer.writerows(asdict(moment) for moment in self.moments)

    @property
    def end_s(self) -> float:
        """The last moment, from the begin of the day on. [s]"""
        return self.moments[-1].t_s if self.moments else 0.0

    def gpu_hours(self, *, gpus_per_replica: int = 1) -> float:
        """Accelerator-hours from the begin of the day on, creation to end of drain."""
        seconds = 0.0
        for before, after in zip(self.moments, self.moments[1:], strict=False):
            if before.t_s >= 0:
                seconds += (after.t_s - before.t_s) * before.pods
        return seconds * gpus_per_replica / SECONDS_PER_HOUR


def read_decision(fleet: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the decision in words out of a ServingFleet's status."""
    decision = (fleet.get("status") or {}).get("decision") or {}
    return {"reason": decision.get("reason", ""), "because": decision.get("because", "")}
