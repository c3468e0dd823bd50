"""
The distribution of a latency: a mixture over kinds of requests of gamma distributions.

Each is matched to three moments: it begins at a shift below the mean, or, if what varies levels
off, is mirrored and ends at a shift above it.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.swing import TINY

BISECTIONS: Final = 28
LEAST_SKEWNESS: Final = 0.1
"""Skewness below which a gamma distribution is as good as a normal one."""
FAR: Final = 60.0
"""Standard deviations above the mean that no percentile up to 99.9 reaches."""
NARROWEST: Final = 1.02
"""Least width between the bounds over the mean excess."""
NEAR: Final = 0.05
"""Mean excess over the width between the bounds below which the upper bound does not matter."""


class Latency(NamedTuple):
    """One latency, by kind of request: shift + variable part; shape (questions, points, kinds)."""

    shift_s: Array
    """Below this it cannot fall; if it is mirrored, above this it cannot rise. [s]"""
    excess_s: Array
    """Mean above the shift: negative where it is mirrored. [s]"""
    variance_s2: Array
    weights: Array
    most_s: Array | None = None
    """Above this it cannot rise, if there is such a bound. [s]"""

    @property
    def mean_s(self) -> Array:
        """Mean by kind of request. [s]"""
        return self.shift_s + self.excess_s

    def attainment(self, target_s: Array | float) -> Array:
        """Share of requests at or below a target; shape (questions, points). 0..1"""
        return np.asarray(np.vecdot(self.weights, self._below(target_s)))

    def overall_mean_s(self) -> Array:
        """Mean over all requests; shape (questions, points). [s]"""
        return np.asarray(np.vecdot(self.weights, self.mean_s))

    def over(self, count: Array) -> "Latency":
        """The same for a part of it, if `count` parts are alike."""
        return Latency(
            shift_s=self.shift_s / count,
            excess_s=self.excess_s / count,
            variance_s2=self.variance_s2 / (count * count),
            weights=self.weights,
            most_s=None if self.most_s is None else self.most_s / count,
        )

    def third_s3(self) -> Array:
        """Third central moment; shape (questions, points, kinds). [s^3]"""
        apart = np.where(np.abs(self.excess_s) < TINY, TINY, self.excess_s)
        return np.asarray(2.0 * self.variance_s2**2 / apart)

    def percentile_s(self, share: float) -> Array:
        """Latency that a share (0..1) of requests does not exceed, by bisection. [s]"""
        average, spread = self.mean_s, np.sqrt(self.variance_s2)
        low = np.minimum(self.shift_s, average).min(axis=-1)
        high = (average + FAR * spread).max(axis=-1) + TINY
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            reached = self.attainment(middle[..., np.newaxis]) >= share
            high = np.where(reached, middle, high)
            low = np.where(reached, low, middle)
        return np.asarray(high)

    def _below(self, target_s: Array | float) -> Array:
        """Share of each kind at or below a target."""
        excess, distance = self.excess_s, target_s - self.shift_s
        rate = excess / np.maximum(self.variance_s2, TINY * TINY)
        shape, scaled = excess * rate, np.maximum(distance * rate, 0.0)
        mirrored = excess < 0
        if self.most_s is None:
            below: Array = special.gammainc(shape, scaled)
        else:
            width = np.maximum(self.most_s - self.shift_s, NARROWEST * excess)
            near = (excess > NEAR * width) & ~mirrored
            below, free = np.empty_like(shape), ~near
            below[near] = self._bounded(near, distance[near], width[near])
            below[free] = special.gammainc(shape[free], scaled[free])
        return np.where(mirrored, 1.0 - below, below) if mirrored.any() else below

    def _bounded(self, near: NDArray[np.bool_], distance: Array, width: Array) -> Array:
        """Where the upper bound is near: beta instead of gamma, the same moments between bounds."""
        middle = self.excess_s[near] / width
        apart = middle * (1.0 - middle)
        spread = np.maximum(self.variance_s2[near], TINY * TINY) / (width * width)
        total = apart / np.minimum(spread, 0.95 * apart) - 1.0
        place = np.minimum(np.maximum(distance / width, 0.0), 1.0)
        return np.asarray(special.betainc(middle * total, (1.0 - middle) * total, place))


def excess_of(variance_s2: Array, third_s3: Array) -> Array:
    """How far above the start of a gamma distribution its mean lies; below zero: its end. [s]"""
    variance_s2 = np.maximum(variance_s2, TINY * TINY)
    least = LEAST_SKEWNESS * variance_s2 * np.sqrt(variance_s2)
    third_s3 = np.where(np.abs(third_s3) < least, least, third_s3)
    return np.asarray(2.0 * variance_s2 * variance_s2 / third_s3)
