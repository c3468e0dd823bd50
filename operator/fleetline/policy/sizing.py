"""
The smallest fleet that carries a rate.

    replicas = min R with R x ceiling(R) >= rate

The ceiling of one replica grows with the fleet (pooling), so the search is for a self-consistent R.
"""

import math
from collections.abc import Callable
from typing import Final

from fleetline.policy.situation import CeilingAt

MOST_REPLICAS: Final = 100_000
"""Beyond every bound of the API (10,000): the search ends here."""

SLACK: Final = 1e-9
"""Relative slack of the comparison, for rates that are exact multiples of a ceiling."""


def replicas_for_rate(rate_per_s: float, ceiling_at: CeilingAt) -> int:
    """Smallest R whose ceilings together carry an arrival rate; 0 for none."""
    least_per_s = rate_per_s * (1 - SLACK)
    return _smallest(
        lambda replicas: replicas * ceiling_at(replicas).rate_per_s >= least_per_s,
        most=_most(least_per_s, ceiling_at(1).rate_per_s),
    )


def replicas_for_drain(rate_per_s: float, ceiling_at: CeilingAt) -> int:
    """Smallest R that completes requests at a rate, whatever their latency; 0 for none."""
    least_per_s = rate_per_s * (1 - SLACK)
    return _smallest(
        lambda replicas: replicas * ceiling_at(replicas).capacity_per_s >= least_per_s,
        most=_most(least_per_s, ceiling_at(1).capacity_per_s),
    )


def replicas_for_concurrency(in_flight_requests: float, ceiling_at: CeilingAt) -> int:
    """Smallest R that holds so many requests at the concurrency of the ceiling; 0 for none."""
    least_requests = in_flight_requests * (1 - SLACK)
    return _smallest(
        lambda replicas: replicas * ceiling_at(replicas).concurrency >= least_requests,
        most=_most(least_requests, ceiling_at(1).concurrency),
    )


def _most(wanted_requests: float, alone_requests: float) -> int:
    """As many as it takes without pooling: never fewer than with it."""
    if wanted_requests <= 0:
        return 0
    if not alone_requests > 0:
        return MOST_REPLICAS
    return min(MOST_REPLICAS, max(1, math.ceil(wanted_requests / alone_requests)))


def _smallest(is_enough: Callable[[int], bool], *, most: int) -> int:
    """Smallest count up to `most` that is enough, for one that stays enough when it grows."""
    low, high = 0, min(1, most)
    while high < most and not is_enough(high):
        low, high = high, min(most, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
