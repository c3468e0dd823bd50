"""A moving average over samples that a policy keeps itself; immutable, cheap at any length."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of the last `length_s` seconds, oldest first."""

    length_s: float
    samples: tuple[tuple[float, float], ...] = ()
    """(time, value)."""

    def with_sample(self, now_s: float, value: float) -> Self:
        """Add a sample and forget what is too old."""
        oldest_s = now_s - self.length_s
        kept = self.samples
        first = next((i for i, (t, _) in enumerate(kept) if t > oldest_s), len(kept))
        return type(self)(self.length_s, (*kept[first:], (now_s, value)))

    def mean(self, over_s: float | None = None) -> float:
        """Mean of the samples of the last `over_s` seconds before the latest; all by default."""
        if over_s is None:
            return _mean(value for _, value in self.samples)
        oldest_s = self.samples[-1][0] - over_s
        return _mean(value for t, value in self.samples if t > oldest_s)


def _mean(values: Iterable[float]) -> float:
    numbers = tuple(values)
    return sum(numbers) / len(numbers)
