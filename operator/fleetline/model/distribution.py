"""
The distribution of a latency: a mixture over kinds of requests of gamma distributions.

Each is matched to three moments: it begins at a shift below the mean, or, if what varies levels
off, is mirrored and ends at a shift above it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from fleetline.model.kinds import Array
from fleetline.model.swing import TINY

BISECTIONS: Final = 40
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
        return np.asarray((self.weights * self._below(target_s)).sum(axis=-1))

    def overall_mean_s(self) -> Array:
        """Mean over all requests; shape (questions, points). [s]"""
        return np.asarray((self.weights * self.mean_s).sum(axis=-1))

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
        signed = self.mean_s - self.shift_s
        excess = np.maximum(np.abs(signed), TINY)
        variance = np.maximum(self.variance_s2, TINY * TINY)
        rate = excess / variance
        mirrored = signed < 0
        scaled = np.maximum(np.where(mirrored, -1.0, 1.0) * (target_s - self.shift_s), 0.0) * rate
        below: Array = np.asarray(special.gammainc(excess * rate, scaled))
        if mirrored.any():
            below = np.where(mirrored, 1.0 - below, below)
        if self.most_s is None:
            return below
        # Where the upper bound is near, beta instead of gamma: the same moments between bounds.
        width = np.maximum(self.most_s - self.shift_s, 1.02 * excess)
        near = np.broadcast_to((excess > NEAR * width) & ~mirrored, below.shape)
        if not near.any():
            return below
        middle = np.broadcast_to(excess / width, below.shape)[near]
        spread = np.broadcast_to(variance / (width * width), below.shape)[near]
        part = np.broadcast_to((target_s - self.shift_s) / width, below.shape)[near]
        total = middle * (1.0 - middle) / np.minimum(spread, 0.95 * middle * (1.0 - middle)) - 1.0
        place = np.clip(part, 0.0, 1.0)
        below = np.array(below)
        below[near] = special.betainc(middle * total, (1.0 - middle) * total, place)
        return below


def shifted(mean_s: Array, variance_s2: Array, third_s3: Array) -> Array:
    """Where a gamma distribution of three moments begins, or if it is mirrored, ends. [s]"""
    skewness = third_s3 / np.maximum(variance_s2, TINY * TINY) ** 1.5
    skewness = np.where(np.abs(skewness) < LEAST_SKEWNESS, LEAST_SKEWNESS, skewness)
    return np.asarray(mean_s - 2.0 * np.sqrt(variance_s2) / skewness)
