"""Rules that say how many replicas the requests need: their result is the recommendation."""

from math import sqrt
from typing import Final

from fleetline.policy.decision import Reason, Step
from fleetline.policy.situation import Situation
from fleetline.policy.sizing import (
    replicas_for_concurrency,
    replicas_for_drain,
    replicas_for_rate,
)

SURE_DEVIATIONS: Final = 1.645
"""One-sided 95 % of a normal: a gauge read once fluctuates by the square root of its value."""

IN_FLIGHT_FACTOR: Final = 2
"""What is inside may at most double what arrivals ask for: after an overload most of it is a queue
that drains once, not demand that stays."""


def meet_demand(_: int, situation: Situation) -> Step:
    """Enough replicas for the largest rate expected until a new one would serve."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None:
        return Step(
            Reason.METRICS_UNAVAILABLE,
            situation.current_replicas,
            f"holding: {situation.demand_unknown_because}",
        )
    if ceiling_at is None:
        return Step(
            Reason.METRICS_UNAVAILABLE,
            situation.current_replicas,
            f"holding: {situation.ceiling_unknown_because}",
        )
    rate_per_s = demand.expected_rate_per_s * demand.margin_factor
    needed = replicas_for_rate(rate_per_s, ceiling_at)
    return Step(
        Reason.DEMAND,
        needed,
        f"{demand.arrival_rate_per_s:.3g} req/s, {rate_per_s:.3g} to be ready for, at "
        f"{ceiling_at(max(1, needed)).rate_per_s:.3g} req/s per replica",
    )


def serve_in_flight(replicas: int, situation: Situation) -> Step | None:
    """By Little's law: as many as hold what is inside, less what may be chance."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None or ceiling_at is None:
        return None
    surely = demand.in_flight_requests - SURE_DEVIATIONS * sqrt(demand.in_flight_requests)
    most = max(replicas + IN_FLIGHT_FACTOR, IN_FLIGHT_FACTOR * replicas)
    needed = min(replicas_for_concurrency(surely, ceiling_at), most)
    if needed <= replicas:
        return None
    return Step(
        Reason.IN_FLIGHT,
        needed,
        f"{demand.in_flight_requests:.0f} requests are inside, one replica holds "
        f"{ceiling_at(needed).concurrency:.3g} at its ceiling",
    )


def drain_backlog(replicas: int, situation: Situation) -> Step | None:
    """Capacity to serve what arrives and to drain what waits in time: B / (C - lambda) <= T."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None or ceiling_at is None or demand.waiting_requests <= 0:
        return None
    backlog = demand.waiting_requests
    rate_per_s = demand.arrival_rate_per_s + backlog / situation.queue_drain_s
    needed = replicas_for_drain(rate_per_s, ceiling_at)
    if needed <= replicas:
        return None
    return Step(
        Reason.BACKLOG,
        needed,
        f"{backlog:.0f} requests wait; to drain them in {situation.queue_drain_s:.0f} s takes "
        f"{rate_per_s:.3g} req/s",
    )
