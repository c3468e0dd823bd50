"""From what was observed and learned to the situation that the policy judges."""

from dataclasses import dataclass
from typing import Final

from fleetline.control.capacity import Capacity, capacity_of
from fleetline.control.evidence import Gap, view_of
from fleetline.control.fleet import Fleet, Mode
from fleetline.control.health import health_of
from fleetline.control.learning import missed_objectives
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Target
from fleetline.errors import ModelError
from fleetline.model.ceiling import Limit
from fleetline.policy.decision import Reason
from fleetline.policy.forecast import Forecast, expect_maximum
from fleetline.policy.situation import Demand, Situation

FIRST_TURNS: Final = 40
"""Turns before the first decrease, ten minutes at the usual period: how requests burst, and how
long they are, is known only by then."""

SMOOTHED_LIMITS: Final = {
    Limit.TIME_PER_OUTPUT_TOKEN,
    Limit.INTER_TOKEN_LATENCY,
    Limit.KV_CACHE,
    Limit.SLOTS,
}
"""Limits set by how many requests are inside, which averages arrivals over the residence time."""

SMOOTHED_SHARE: Final = 0.5
"""Part of the residence time over which arrivals average: exactly the residence time would be a
box; stays are spread. 0..1"""

LEAST_SMOOTHING_S: Final = 300.0
"""An objective is a percentile over minutes, so a gust of seconds breaks none: the maximum that
counts is that of the mean rate over five minutes. On replayed traces 3 to 8 % fewer GPU-hours than
the maximum of single minutes, at as many windows. [s]"""

SMOOTHED_PER_S: Final = 1 / 60
"""Nothing is averaged over longer than the square of the horizon times this: over five minutes from
134 s on, over seconds where replicas serve within seconds. [1/s]"""

SEEN_LATE_TURNS: Final = 4.0
MOST_SEEN_LATE_S: Final = 60.0
"""Rates are means over four turns, a minute at most, and scraped a while ago: so late the present
is seen. [s]"""

MOST_SMOOTHING_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The situation, and what it was made from: status and explanations print it."""

    situation: Situation
    capacity: Capacity | None
    forecast: Forecast | None
    missed: tuple[str, ...] = ()
    gap: Gap | None = None
    """What is missing from the view of the fleet; None if nothing is."""


def assess(
    fleet: Fleet,
    memory: Memory,
    target: Target,
    seen: Observations | str,
    *,
    now_s: float,
    period_s: float,
) -> Assessment:
    """
    Put the situation together.

    Parameters
    ----------
    fleet, memory, target
        What is asked for, what was learned (this turn included), what runs.
    seen
        Observations, or why there are none.
    now_s, period_s
        Time of the turn and time between turns. [s]
    """
    health = health_of(target, now_s, deadline_s=memory.startup.deadline_s)
    capacity, capacity_unknown = _capacity(fleet, memory, target)
    observed = seen if isinstance(seen, Observations) else None
    view = view_of(observed, target, now_s)
    because = view.because
    demand: Demand | None = None
    forecast: Forecast | None = None
    unknown = seen if isinstance(seen, str) else because
    if observed is not None:
        demand, forecast, unknown = _demand(observed, memory, capacity, period_s)
        if observed.arrival_rate_per_s.value is None:
            because = unknown
    missed = () if observed is None else missed_objectives(fleet, observed)
    situation = Situation(
        now_s=now_s,
        current_replicas=target.replicas,
        min_replicas=fleet.min_replicas,
        max_replicas=fleet.max_replicas,
        behavior=fleet.behavior,
        demand=demand,
        demand_unknown_because=unknown,
        ceiling_at=None if capacity is None else capacity.ceiling_at,
        ceiling_unknown_because=capacity_unknown,
        queue_drain_s=fleet.queue_drain_s,
        evidence=view.evidence,
        incomplete_because=because,
        latency_above_objective=missed[0] if missed else "",
        health=health,
        is_rolling_out=target.is_rolling_out,
        least_view_s=_least_view_s(memory, period_s),
        held_by=_held_by(fleet, target),
        history=memory.history,
    )
    return Assessment(
        situation=situation, capacity=capacity, forecast=forecast, missed=missed, gap=view.gap
    )


def _least_view_s(memory: Memory, period_s: float) -> float:
    """While rates were seen for a few turns only, a forecast is hardly more than its prior. [s]"""
    times = memory.rates.times_s
    seen_s = float(times[-1] - times[0]) if times.size else 0.0
    needed_s = FIRST_TURNS * period_s
    return needed_s if seen_s < needed_s else 0.0


def _held_by(fleet: Fleet, target: Target) -> tuple[Reason, str] | None:
    if fleet.mode is Mode.PAUSED:
        return Reason.PAUSED, "spec.mode is Paused"
    if target.conflicts_with:
        owner = target.conflicts_with.startswith("ServingFleet ")
        reason = Reason.CONFLICTING_OWNER if owner else Reason.CONFLICTING_AUTOSCALER
        return reason, f"{target.conflicts_with} scales the same target"
    return None


def _capacity(fleet: Fleet, memory: Memory, target: Target) -> tuple[Capacity | None, str]:
    if target.replica is None:
        return None, target.replica_unknown_because or "the replica is not known"
    try:
        shape = memory.lengths.shape
        capacity = capacity_of(target.replica, memory.calibration, shape, fleet.objectives)
    except ModelError as error:
        return None, str(error)
    if not capacity.ample.is_attainable:
        return None, capacity.unattainable_because or "no load meets the objectives"
    return capacity, ""


def _demand(
    seen: Observations, memory: Memory, capacity: Capacity | None, period_s: float
) -> tuple[Demand | None, Forecast | None, str]:
    """Say what has to be served; unknown arrivals are inferred by Little's law."""
    running, waiting = seen.running_requests.value, seen.waiting_requests.value
    inside = (running or 0.0) + (waiting or 0.0)
    steadily = min((one for _, one in memory.inside), default=inside)
    rate_per_s = seen.arrival_rate_per_s.value
    if rate_per_s is None:
        because = f"arrivals are unknown: {seen.arrival_rate_per_s.unknown_because}"
        if capacity is None or running is None:
            return None, None, because
        residence_s = capacity.smallest.residence_time_s
        inferred = inside / residence_s if residence_s > 0 else 0.0
        return _known(inferred, inferred, inside, waiting, memory), None, because
    seen_late_s = min(SEEN_LATE_TURNS * period_s, MOST_SEEN_LATE_S)
    horizon_s = memory.startup.likely_s + period_s + seen_late_s
    forecast = expect_maximum(
        memory.rates,
        horizon_s,
        smoothing_s=min(_smoothing_s(capacity), SMOOTHED_PER_S * horizon_s**2),
    )
    expected_per_s = max(rate_per_s, forecast.expected_rate_per_s)
    demand = _known(rate_per_s, expected_per_s, steadily, waiting, memory)
    return demand, forecast, ""


def _known(
    rate_per_s: float,
    expected_rate_per_s: float,
    inside: float,
    waiting: float | None,
    memory: Memory,
) -> Demand:
    return Demand(
        arrival_rate_per_s=rate_per_s,
        expected_rate_per_s=expected_rate_per_s,
        in_flight_requests=inside,
        waiting_requests=waiting or 0.0,
        margin_factor=memory.margin_factor,
    )


def _smoothing_s(capacity: Capacity | None) -> float:
    if capacity is None:
        return LEAST_SMOOTHING_S
    ceiling = capacity.smallest
    if ceiling.limit not in SMOOTHED_LIMITS:
        return LEAST_SMOOTHING_S
    stay_s = SMOOTHED_SHARE * ceiling.residence_time_s
    return min(MOST_SMOOTHING_S, max(LEAST_SMOOTHING_S, stay_s))
