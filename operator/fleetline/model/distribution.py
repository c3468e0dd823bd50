"""
The distribution of a latency: a mixture over kinds of requests of gamma distributions.

Each is matched to three moments: it begins at a shift below the mean, or, if what varies levels
off, is mirrored and ends at a shift above it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.swing import TINY

BISECTIONS: Final = 28
FAR_BELOW: Final = 5.3
FAR_ABOVE: Final = 14.0
"""Deviations, and units of the scale above them, beyond which a gamma distribution is 0 or 1 to six
digits (Chernoff's bound)."""
NOBODY: Final = 1e-7
"""Weight of a kind whose latency nobody's percentile sees."""
LEAST_SKEWNESS: Final = 0.1
"""Skewness below which a gamma distribution is as good as a normal one."""
FAR: Final = 60.0
"""Standard deviations above the mean that no percentile up to 99.9 reaches."""
NEAR: Final = 0.05
"""Mean excess over the width between the bounds below which the upper bound does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One latency, by kind of request: shift + variable part; shape (questions, points, kinds)."""

    mean_s: Array
    variance_s2: Array
    shift_s: Array
    """Below this it cannot fall. [s]"""
    weights: Array
    most_s: Array | None = None
    """Above this it cannot rise, if there is such a bound. [s]"""

    def attainment(self, target_s: Array | float) -> Array:
        """Share of requests at or below a target; shape (questions, points). 0..1"""
        return np.asarray(np.vecdot(self.weights, self._below(target_s)))

    def overall_mean_s(self) -> Array:
        """Mean over all requests; shape (questions, points). [s]"""
        return np.asarray(np.vecdot(self.weights, self.mean_s))

    def over(self, count: Array) -> "Latency":
        """The same for a part of it, if `count` parts are alike."""
        return Latency(
            mean_s=self.mean_s / count,
            variance_s2=self.variance_s2 / (count * count),
            shift_s=self.shift_s / count,
            weights=self.weights,
            most_s=None if self.most_s is None else self.most_s / count,
        )

    def third_s3(self) -> Array:
        """Third central moment; shape (questions, points, kinds). [s^3]"""
        apart = self.mean_s - self.shift_s
        apart = np.where(np.abs(apart) < TINY, TINY, apart)
        return np.asarray(2.0 * self.variance_s2**2 / apart)

    def percentile_s(self, share: float) -> Array:
        """Latency that a share (0..1) of requests does not exceed, by bisection. [s]"""
        spread = np.sqrt(self.variance_s2)
        low = np.minimum(self.shift_s, self.mean_s).min(axis=-1)
        high = (self.mean_s + FAR * spread).max(axis=-1) + TINY
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            reached = self.attainment(middle[..., np.newaxis]) >= share
            high = np.where(reached, middle, high)
            low = np.where(reached, low, middle)
        return np.asarray(high)

    def _below(self, target_s: Array | float) -> Array:
        """Share of each kind at or below a target."""
        signed = self.mean_s - self.shift_s + TINY * TINY  # negative where mirrored
        rate = signed / np.maximum(self.variance_s2, TINY * TINY)
        distance = target_s - self.shift_s
        scaled, shape = np.maximum(distance * rate, 0.0), signed * rate
        apart = scaled - shape
        edge = FAR_BELOW * np.sqrt(shape)
        open_ = (apart > -edge) & (apart < edge + FAR_ABOVE) & (self.weights > NOBODY)
        below: Array = (apart > 0).astype(np.float64)
        if self.most_s is not None:
            width = np.maximum(self.most_s - self.shift_s, 1.02 * np.abs(signed))
            near = signed > NEAR * width
            if near.any():
                seen = near & (open_ | (signed > 0.5 * width))
                self._bounded(below, seen, (signed, width, distance))
                open_ &= ~near
        below[open_] = special.gammainc(shape[open_], scaled[open_])
        mirrored = signed < 0
        return np.where(mirrored, 1.0 - below, below) if mirrored.any() else below

    def _bounded(
        self, below: Array, near: NDArray[np.bool_], sizes_s: tuple[Array, Array, Array]
    ) -> None:
        """Where the upper bound is near: beta instead of gamma, the same moments between bounds."""
        excess, whole, distance = (size[near] for size in sizes_s)
        middle = excess / whole
        apart = middle * (1.0 - middle)
        spread = np.maximum(self.variance_s2[near], TINY * TINY) / (whole * whole)
        total = apart / np.minimum(spread, 0.95 * apart) - 1.0
        place = np.minimum(np.maximum(distance / whole, 0.0), 1.0)
        below[near] = special.betainc(middle * total, (1.0 - middle) * total, place)


def shifted(mean_s: Array, variance_s2: Array, third_s3: Array) -> Array:
    """Where a gamma distribution of three moments begins, or if it is mirrored, ends. [s]"""
    variance_s2 = np.maximum(variance_s2, TINY * TINY)
    cube = variance_s2 * np.sqrt(variance_s2)
    least = LEAST_SKEWNESS * cube
    third_s3 = np.where(np.abs(third_s3) < least, least, third_s3)
    return mean_s - 2.0 * variance_s2 * variance_s2 / third_s3
