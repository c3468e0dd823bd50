"""One window of measurements, and why it may teach nothing."""

import math
from dataclasses import dataclass
from typing import Final

LEAST_REQUESTS: Final = 20
"""Completed requests below which a window's means are noise. [requests]"""
LEAST_AGE_S: Final = 120.0
"""Age below which a replica still warms up: caches, compilation, connections. [s]"""
UNSTEADY: Final = 0.3
"""How far L may be from lambda W, relatively, in a window that counts as steady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Means over one window, of one replica (the mean over replicas of one fleet)."""

    at_s: float
    arrival_rate_per_s: float
    """Requests per second and replica. [1/s]"""
    running_requests: float
    waiting_requests: float = 0.0
    time_to_first_token_s: float | None = None
    inter_token_latency_s: float | None = None
    end_to_end_s: float | None = None
    requests: float
    """Requests completed in the window, all replicas together."""
    youngest_replica_age_s: float = math.inf
    replicas: int = 1
    """How many share the load behind one router: they wait less than one alone."""


def refusal(sample: Sample) -> str:
    """Why a sample teaches nothing, or an empty string."""
    if sample.requests < LEAST_REQUESTS:
        return f"window must hold >= {LEAST_REQUESTS} requests, got {sample.requests:g}"
    if sample.youngest_replica_age_s < LEAST_AGE_S:
        return (
            f"replicas must be >= {LEAST_AGE_S:g} s old, got {sample.youngest_replica_age_s:.0f} s"
        )
    if sample.inter_token_latency_s is None and sample.time_to_first_token_s is None:
        return "sample must hold a latency, got none"
    if sample.end_to_end_s is not None and sample.arrival_rate_per_s > 0:
        inside = sample.running_requests + sample.waiting_requests
        expected = sample.arrival_rate_per_s * sample.end_to_end_s
        if abs(inside - expected) > UNSTEADY * max(inside, expected) + 1.0:
            return (
                f"window must be steady (L = lambda W, {expected:.1f}), "
                f"got {inside:.1f} requests inside"
            )
    return ""
