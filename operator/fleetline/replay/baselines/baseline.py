"""The shape of a baseline: parameters with published defaults, and a pure step function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fleetline.replay.observation import Observation
from fleetline.replay.site import Site

P = TypeVar("P")
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Generic[P, S]):
    """A published autoscaling algorithm, ready to be driven by the replay."""

    name: str
    source: str
    """Where the algorithm and its defaults are published."""
    period_s: float
    """How often it decides. [s]"""
    scrape_s: float | None
    """How often its own metrics path samples replicas; None: Prometheus' interval. [s]"""
    default: Callable[[Site], P]
    """Published defaults; a value that users must set is derived from the site."""
    tunings: Callable[[Site], tuple[P, ...]]
    """Settings among which hindsight may choose."""
    begin: Callable[[P, int], S]
    """State before the first step, given the initial replicas."""
    step: Callable[[P, S, Observation], tuple[S, int]]
    """One decision: the state after it, and the desired replicas."""


CONCURRENCY_SHARES = (0.3, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1)
"""Thresholds on requests per replica that hindsight tries, as shares of the concurrency at the
ceiling of one replica."""
