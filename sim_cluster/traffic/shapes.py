"""Load shapes: the arrival rate as a function of time. [1/s]"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Protocol


class Shape(Protocol):
    """An arrival rate over a stretch of time."""

    @property
    def duration_s(self) -> float:
        """Length of the stretch; infinite if it never ends. [s]"""
        ...

    def rate_per_s(self, t_s: float) -> float:
        """Arrival rate at a moment after the begin. [1/s]"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same rate all the time."""

    level_per_s: float
    duration_s: float = math.inf

    def rate_per_s(self, t_s: float) -> float:  # noqa: ARG002 - the protocol's signature
        """Return the level. [1/s]"""
        return self.level_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """From one rate to another in a straight line."""

    from_per_s: float
    to_per_s: float
    duration_s: float

    def rate_per_s(self, t_s: float) -> float:
        """Rate on the line. [1/s]"""
        return self.from_per_s + (self.to_per_s - self.from_per_s) * t_s / self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rate, and another from a moment on."""

    before_per_s: float
    after_per_s: float
    at_s: float
    duration_s: float = math.inf

    def rate_per_s(self, t_s: float) -> float:
        """Rate before or after the step. [1/s]"""
        return self.before_per_s if t_s < self.at_s else self.after_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """A base with one rectangular burst."""

    base_per_s: float
    peak_per_s: float
    at_s: float
    width_s: float
    duration_s: float = math.inf

    def rate_per_s(self, t_s: float) -> float:
        """Return the base, or the peak inside the burst. [1/s]"""
        inside = self.at_s <= t_s < self.at_s + self.width_s
        return self.peak_per_s if inside else self.base_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedDay:
    """
    A day's swing between trough and peak in a few minutes, with one burst on its falling side.

    It begins and ends in the trough and has its peak at `peak_at`; a burst of half-width
    `burst_width_s` rises to `burst_per_s` above the swing and falls again, like a bell.
    """

    trough_per_s: float
    peak_per_s: float
    duration_s: float
    peak_at: float = 0.5
    """Moment of the peak as a share of the day. 0..1, neither of them"""
    burst_per_s: float = 0.0
    burst_at: float = 0.72
    """Moment of the burst as a share of the day. 0..1"""
    burst_width_s: float = 6.0

    def rate_per_s(self, t_s: float) -> float:
        """Rate of the swing and the burst together. [1/s]"""
        share = t_s / self.duration_s
        rises = share < self.peak_at
        half = share / self.peak_at if rises else (1 - share) / (1 - self.peak_at)
        swing = (1 - math.cos(math.pi * half)) / 2
        distance = (t_s - self.burst_at * self.duration_s) / self.burst_width_s
        burst = self.burst_per_s * math.exp(-(distance**2))
        return self.trough_per_s + (self.peak_per_s - self.trough_per_s) * swing + burst


@dataclass(frozen=True, slots=True)
class RateTable:
    """Rates at moments, held from each moment to the next."""

    moments_s: tuple[float, ...]
    """Ascending from 0. [s]"""
    rates_per_s: tuple[float, ...]
    duration_s: float

    def rate_per_s(self, t_s: float) -> float:
        """Rate of the last moment that has passed. [1/s]"""
        return self.rates_per_s[max(bisect.bisect_right(self.moments_s, t_s) - 1, 0)]


@dataclass(frozen=True, slots=True)
class Sequence:
    """One shape after another."""

    parts: tuple[Shape, ...]

    @property
    def duration_s(self) -> float:
        """Length of all parts together. [s]"""
        return sum(part.duration_s for part in self.parts)

    def rate_per_s(self, t_s: float) -> float:
        """Rate of the part that the moment falls into; 0 after the last. [1/s]"""
        for part in self.parts:
            if t_s < part.duration_s:
                return part.rate_per_s(t_s)
            t_s -= part.duration_s
        return 0.0
