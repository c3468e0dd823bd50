"""A backtest in numbers: windows of five minutes, and what each side used and missed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean
from typing import Any, Final

from fleetline.replay.backtest import Outcome

WINDOW_S: Final = 300.0
SECONDS_PER_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Five minutes, side by side."""

    at_s: float
    """Unix time at which it begins. [s]"""
    arrival_rate_per_s: float | None
    ran_replicas: float
    replicas: float
    ran_above: bool
    """Whether more arrived than the ceilings of what ran together."""
    above: bool
    ran_missed: bool | None
    """Whether an objective was missed at most moments at which one was measured."""
    reason: str
    """Of the last decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side used and missed."""

    gpu_hours: float
    cost_usd: float | None
    changes: int
    least_replicas: int
    most_replicas: int
    windows_above_ceiling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole comparison."""

    windows: tuple[Window, ...]
    ran: Side
    fleetline: Side
    windows_missed_as_measured: int | None
    """Of what ran; None if no latency was measured."""

    def as_json(self) -> dict[str, Any]:
        """Keys that scripts rely on."""
        return {
            "from": self.windows[0].at_s if self.windows else None,
            "windows": len(self.windows),
            "ran": {
                **_side(self.ran),
                "windows_missed_as_measured": self.windows_missed_as_measured,
            },
            "fleetline": _side(self.fleetline),
            "timeline": [row(one) for one in self.windows],
        }


def report(
    outcomes: Sequence[Outcome],
    *,
    period_s: float,
    startup_s: float,
    accelerators: int,
    price_usd_per_hour: float | None,
) -> Report:
    """
    Compare.

    Parameters
    ----------
    outcomes
        One for each moment, in order.
    period_s, startup_s
        Time between moments; time from creation until a replica shows metrics. [s]
    accelerators
        Of one replica.
    price_usd_per_hour
        Of one accelerator; None if it is not known.
    """
    windows = tuple(_windows(outcomes))
    ran = [one.ran_replicas for one in outcomes]
    ours = [one.replicas for one in outcomes]
    # What ran is seen only when it shows metrics, but was paid for since it was created.
    starts = sum(max(0, after - before) for before, after in pairwise(ran))
    missed = [one.ran_missed for one in windows if one.ran_missed is not None]

    def side(replicas: list[int], extra_s: float, above: int) -> Side:
        hours = (sum(replicas) * period_s + extra_s) * accelerators / SECONDS_PER_HOUR
        return Side(
            gpu_hours=hours,
            cost_usd=None if price_usd_per_hour is None else hours * price_usd_per_hour,
            changes=sum(before != after for before, after in pairwise(replicas)),
            least_replicas=min(replicas, default=0),
            most_replicas=max(replicas, default=0),
            windows_above_ceiling=above,
        )

    return Report(
        windows=windows,
        ran=side(ran, starts * startup_s, sum(one.ran_above for one in windows)),
        fleetline=side(ours, 0.0, sum(one.above for one in windows)),
        windows_missed_as_measured=sum(missed) if missed else None,
    )


def row(window: Window) -> dict[str, Any]:
    """One window as a row of a table."""
    return {
        "at_s": window.at_s,
        "arrival_rate_rps": window.arrival_rate_per_s,
        "ran_replicas": window.ran_replicas,
        "fleetline_replicas": window.replicas,
        "ran_above_ceiling": window.ran_above,
        "fleetline_above_ceiling": window.above,
        "ran_missed": window.ran_missed,
        "reason": window.reason,
    }


def _windows(outcomes: Sequence[Outcome]) -> Iterator[Window]:
    for number, group in groupby(outcomes, key=lambda one: int(one.at_s // WINDOW_S)):
        inside = list(group)
        rates = [one.arrival_rate_per_s for one in inside if one.arrival_rate_per_s is not None]
        rate_per_s = fmean(rates) if rates else None
        missed = [one.ran_missed for one in inside if one.ran_missed is not None]
        yield Window(
            at_s=number * WINDOW_S,
            arrival_rate_per_s=rate_per_s,
            ran_replicas=fmean(one.ran_replicas for one in inside),
            replicas=fmean(one.replicas for one in inside),
            ran_above=_is_above(rate_per_s, [one.ran_ceiling_per_s for one in inside]),
            above=_is_above(rate_per_s, [one.ceiling_per_s for one in inside]),
            ran_missed=2 * sum(missed) > len(missed) if missed else None,
            reason=inside[-1].reason,
        )


def _is_above(rate_per_s: float | None, ceilings_per_s: Sequence[float | None]) -> bool:
    known = [one for one in ceilings_per_s if one is not None]
    return rate_per_s is not None and bool(known) and rate_per_s > fmean(known)


def _side(side: Side) -> dict[str, Any]:
    return {
        "gpu_hours": side.gpu_hours,
        "cost": side.cost_usd,
        "scale_actions": side.changes,
        "min_replicas": side.least_replicas,
        "max_replicas": side.most_replicas,
        "windows_above_ceiling": side.windows_above_ceiling,
    }
