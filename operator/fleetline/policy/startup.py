"""How long a new replica takes until it serves: measured, a distribution, with a prior before."""

import math
from dataclasses import dataclass, replace
from typing import Final, Self

PRIOR_S: Final = 180.0
"""Between 30 s (cached image, small model) and 10 min (new node, large weights). [s]"""

PRIOR_STARTS: Final = 0.5
"""Weight of the prior: as much as half a measured start. Starts of one workload differ by a factor
of two, those of different workloads by twenty."""

QUANTILE: Final = 0.9
MEMORY: Final = 32
LEAST_S: Final = 1.0
LONGEST_S: Final = 3600.0
DEADLINE_FACTOR: Final = 3.0
LEAST_DEADLINE_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTimes:
    """The last starts of one fleet; immutable."""

    seconds: tuple[float, ...] = ()
    seen: frozenset[str] = frozenset()
    """Names of pods whose start is counted, or was missed."""
    prior_s: float = PRIOR_S

    def observe(self, started: dict[str, float], alive: frozenset[str]) -> Self:
        """Add starts by pod name; forget the names of pods that are gone."""
        new = [
            seconds
            for name, seconds in started.items()
            if name not in self.seen and 0 <= seconds <= LONGEST_S
        ]
        seen = (self.seen | started.keys()) & alive
        if not new and seen == self.seen:
            return self
        return replace(self, seconds=(*self.seconds, *new)[-MEMORY:], seen=seen)

    @property
    def typical_s(self) -> float:
        """Median start. [s]"""
        return self.quantile_s(0.5)

    @property
    def likely_s(self) -> float:
        """Nine of ten starts take no longer: the main part of how far decisions look ahead. [s]"""
        return self.quantile_s(QUANTILE)

    @property
    def deadline_s(self) -> float:
        """A replica that is not ready by then has failed. [s]"""
        longest_s = max([self.likely_s, *self.seconds])
        return max(LEAST_DEADLINE_S, DEADLINE_FACTOR * longest_s)

    def quantile_s(self, quantile: float) -> float:
        """Quantile of the measured starts; the prior's share of its logarithm fades. [s]"""
        if not self.seconds:
            return self.prior_s
        ordered = sorted(self.seconds)
        measured_s = ordered[min(len(ordered) - 1, math.ceil(quantile * len(ordered)) - 1)]
        weight = len(ordered) / (len(ordered) + PRIOR_STARTS)
        prior_s, measured_s = max(self.prior_s, LEAST_S), max(measured_s, LEAST_S)
        return math.exp(weight * math.log(measured_s) + (1 - weight) * math.log(prior_s))
