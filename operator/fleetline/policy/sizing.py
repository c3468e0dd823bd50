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
    return _smallest(rate_per_s, lambda replicas: ceiling_at(replicas).rate_per_s)


def replicas_for_drain(rate_per_s: float, ceiling_at: CeilingAt) -> int:
    """Smallest R that completes requests at a rate, whatever their latency; 0 for none."""
    return _smallest(rate_per_s, lambda replicas: ceiling_at(replicas).capacity_per_s)


def replicas_for_concurrency(in_flight_requests: float, ceiling_at: CeilingAt) -> int:
    """Smallest R that holds so many requests at the concurrency of the ceiling; 0 for none."""
    return _smallest(in_flight_requests, lambda replicas: ceiling_at(replicas).concurrency)


def _smallest(amount: float, share_of: Callable[[int], float]) -> int:
    """Smallest R with R x share(R) >= amount, for a share that does not fall with R."""
    if amount <= 0:
        return 0
    alone = share_of(1)
    if not alone > 0:
        return MOST_REPLICAS
    high = min(MOST_REPLICAS, max(1, math.ceil(amount / alone * (1 - SLACK))))
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if middle * share_of(middle) >= amount * (1 - SLACK):
            high = middle
        else:
            low = middle
    return high
