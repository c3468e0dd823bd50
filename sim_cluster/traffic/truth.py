"""
The truth about every request, kept by whoever sent it: what metrics and models are judged by.

Times are simulated seconds of the pool's clock; `origin_s` is where the traffic began. Latencies
count from the arrival at the gateway, so a wait for a first replica is part of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_ROUNDING: Final = 1e-9
"""0.95 x 20 is 19, also in floating point."""


class ObjectiveLike(Protocol):
    """A latency objective: `fleetline.model.objective.Objective` is one."""

    @property
    def metric(self) -> str:
        """TimeToFirstToken, TimePerOutputToken, InterTokenLatency or EndToEnd."""
        ...

    @property
    def percentile(self) -> int:
        """Share of requests that must hold the target. [%]"""
        ...

    @property
    def target_s(self) -> float:
        """Largest latency that is good. [s]"""
        ...


@dataclass(slots=True)
class RequestRecord:
    """One request from its arrival to its last token, wherever it was served."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    cached_prompt_tokens: int = 0
    replica: str = ""
    first_token_s: float = math.inf
    finished_s: float = math.inf
    reroutes: int = 0
    """How often its replica vanished under it."""
    refused: bool = False
    """No replica could ever hold it."""

    @property
    def time_to_first_token_s(self) -> float:
        """From arrival to the first token; infinite while there is none. [s]"""
        return self.first_token_s - self.arrival_s

    @property
    def time_per_output_token_s(self) -> float | None:
        """Mean gap between tokens; None if there is no gap, infinite if unfinished. [s]"""
        gaps = self.output_tokens - 1
        if gaps < 1:
            return None
        if not math.isfinite(self.finished_s):
            return math.inf
        return (self.finished_s - self.first_token_s) / gaps

    @property
    def residence_time_s(self) -> float:
        """From arrival to the last token; infinite while there is none. [s]"""
        return self.finished_s - self.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The state of traffic and replicas at one moment."""

    t_s: float
    """Since the origin. [s]"""
    arrivals: int
    in_flight: int
    held: int
    """Requests at the gateway for want of a ready replica."""
    running: int
    waiting: int
    ready_replicas: int
    kv_usage: float
    """Mean over the ready replicas. 0..1"""


_LATENCIES: Final[dict[str, Callable[[RequestRecord], float | None]]] = {
    "TimeToFirstToken": lambda record: record.time_to_first_token_s,
    "TimePerOutputToken": lambda record: record.time_per_output_token_s,
    "InterTokenLatency": lambda record: record.time_per_output_token_s,
    "EndToEnd": lambda record: record.residence_time_s,
}


class Truth:
    """Every request of one router, and a sample of its state every second."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.samples: list[Sample] = []
        self.origin_s = 0.0

    @property
    def arrivals(self) -> int:
        """Requests that have arrived."""
        return len(self.records)

    @property
    def finished(self) -> int:
        """Requests that have their last token."""
        return sum(math.isfinite(record.finished_s) for record in self.records)

    def windows_met(
        self,
        objectives: Iterable[ObjectiveLike],
        window_s: float = 300.0,
        *,
        until_s: float = math.inf,
    ) -> float | None:
        """
        Share of windows in which every objective held for the requests that arrived in them.

        Windows without arrivals do not count; unfinished requests count as missed. `until_s`
        leaves out windows that end later, for instance those that cannot be judged yet. None if
        no window is left. [0..1]
        """
        wanted = list(objectives)
        judged = [
            all(_holds(records, one) for one in wanted)
            for end_s, records in self._windows(window_s)
            if end_s <= until_s
        ]
        return sum(judged) / len(judged) if judged else None

    def goodput_share(self, objectives: Iterable[ObjectiveLike]) -> float | None:
        """Share of requests that met every target; None if none arrived. [0..1]"""
        wanted = list(objectives)
        if not self.records:
            return None
        good = sum(all(_is_good(record, one) for one in wanted) for record in self.records)
        return good / len(self.records)

    def percentile_s(
        self, metric: str, percentile: float, *, from_s: float = 0.0, until_s: float = math.inf
    ) -> float | None:
        """Latency percentile of requests that arrived in a stretch; None if there are none. [s]"""
        begin_s = self.origin_s + from_s
        end_s = self.origin_s + until_s
        chosen = [record for record in self.records if begin_s <= record.arrival_s < end_s]
        return percentile_of(_latencies(chosen, metric), percentile)

    def recent_percentile_s(
        self, metric: str, percentile: float, *, now_s: float, last_s: float
    ) -> float | None:
        """Latency percentile of requests that finished in the last seconds, for live views. [s]"""
        recent = []
        for record in reversed(self.records):
            if now_s - last_s <= record.finished_s <= now_s:
                recent.append(record)
            if record.arrival_s < now_s - 10 * last_s:
                break
        return percentile_of(_latencies(recent, metric), percentile)

    def series(self, step_s: float = 5.0) -> list[dict[str, float | None]]:
        """Rates and percentiles of the requests that arrived in each step, for plots."""
        return [
            {
                "t_s": end_s - step_s,
                "arrival_rate_per_s": len(records) / step_s,
                "time_to_first_token_p95_s": _p95(records, "TimeToFirstToken"),
                "time_per_output_token_p95_s": _p95(records, "TimePerOutputToken"),
                "end_to_end_p95_s": _p95(records, "EndToEnd"),
            }
            for end_s, records in self._windows(step_s)
        ]

    def _windows(self, window_s: float) -> list[tuple[float, list[RequestRecord]]]:
        """Group requests by window of arrival; with the window's end since the origin."""
        groups: defaultdict[int, list[RequestRecord]] = defaultdict(list)
        for record in self.records:
            groups[int((record.arrival_s - self.origin_s) // window_s)].append(record)
        return [((index + 1) * window_s, groups[index]) for index in sorted(groups)]


def percentile_of(values: Sequence[float], percentile: float) -> float | None:
    """Smallest value that this share of all does not exceed; None of nothing."""
    if not values:
        return None
    rank = max(1, math.ceil(percentile / 100 * len(values)))
    return sorted(values)[rank - 1]


def _latencies(records: Iterable[RequestRecord], metric: str) -> list[float]:
    if metric not in _LATENCIES:
        raise ValueError(f"metric must be one of {', '.join(_LATENCIES)}, got {metric!r}")
    measured = map(_LATENCIES[metric], records)
    return [value for value in measured if value is not None]


def _p95(records: Iterable[RequestRecord], metric: str) -> float | None:
    value = percentile_of(_latencies(records, metric), 95)
    return value if value is not None and math.isfinite(value) else None


def _holds(records: Sequence[RequestRecord], objective: ObjectiveLike) -> bool:
    good = sum(_is_good(record, objective) for record in records)
    return good >= objective.percentile / 100 * len(records) - _ROUNDING


def _is_good(record: RequestRecord, objective: ObjectiveLike) -> bool:
    """Whether a request met a target; a latency that it does not have is met, unfinished is not."""
    if not math.isfinite(record.finished_s):
        return False
    return all(
        value <= objective.target_s for value in _latencies((record,), str(objective.metric))
    )
