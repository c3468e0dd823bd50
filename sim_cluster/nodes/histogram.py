"""A Prometheus histogram as two numbers an observation: cheap enough for every simulated pod."""

from __future__ import annotations

import bisect
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Histogram:
    """Counts below each upper bound; the last bucket is `+Inf`."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value`, `times` over; a value equal to a bound belongs to its bucket."""
        self._counts[bisect.bisect_left(self.bounds, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        """Observations so far."""
        return sum(self._counts)

    def cumulative(self) -> list[int]:
        """Observations at or below each bound, and all of them last."""
        return list(accumulate(self._counts))
