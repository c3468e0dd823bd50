"""
How long a pod takes from its binding to a node until it serves: a distribution, never a constant.

    8s   2m   500ms                 always the same
    uniform(20s,40s)                anything between the two
    lognormal(60s,0.4)              median and the standard deviation of the logarithm
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import random

_UNITS_S: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_CALL: Final = re.compile(r"(uniform|lognormal)\(([^,]+),([^,]+)\)")


class StartupTime(Protocol):
    """A distribution of start-up times."""

    def draw_s(self, chance: random.Random) -> float:
        """Draw the start-up time of one pod. [s]"""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    time_s: float

    def draw_s(self, chance: random.Random) -> float:  # noqa: ARG002 - the protocol's signature
        """Return the time."""
        return self.time_s


@dataclass(frozen=True, slots=True)
class Uniform:
    """Anything between two times."""

    low_s: float
    high_s: float

    def draw_s(self, chance: random.Random) -> float:
        """Draw uniformly. [s]"""
        return chance.uniform(self.low_s, self.high_s)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Skewed to the long side, as measured cold starts are."""

    median_s: float
    sigma: float
    """Standard deviation of the logarithm."""

    def draw_s(self, chance: random.Random) -> float:
        """Draw a start-up time. [s]"""
        return chance.lognormvariate(math.log(self.median_s), self.sigma)


def parse_duration_s(text: str) -> float:
    """Read `500ms`, `8s`, `1m30s`. [s]"""
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"duration must be a number with ms, s, m or h such as 8s, got {text!r}")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def parse_startup_time(text: str) -> StartupTime:
    """Read a distribution in the notation of this module's description."""
    call = _CALL.fullmatch(text.replace(" ", ""))
    if call is None:
        return Fixed(parse_duration_s(text))
    name, first, second = call.groups()
    if name == "uniform":
        return Uniform(parse_duration_s(first), parse_duration_s(second))
    median_s = parse_duration_s(first)
    if not median_s > 0:
        raise ValueError(f"median of lognormal must be > 0 s, got {first!r}")
    return LogNormal(median_s, float(second))
