"""What every engine of a fleet would show at a moment, in columns: one element a replica."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """A latency histogram of each replica since it was born."""

    bounds_s: Floats
    """Upper bounds of the buckets, without the infinite one. [s]"""
    counts: Ints
    """Shape (replicas, buckets): observations in each bucket, not cumulative; last: +Inf."""
    sums_s: Floats
    """Shape (replicas,): sum of the observations. [s]"""

    @property
    def cumulative(self) -> Ints:
        """Counts the way `_bucket{le=...}` series have them; the last column is `_count`."""
        return np.cumsum(self.counts, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """
    The fleet at a moment.

    Columns cover the replicas whose `/metrics` answers: ready ones and draining ones.
    Counters start at zero with each replica, and vanish with it, as a pod's do.
    """

    now_s: float
    asked_replicas: int
    """What the scale subresource asks for."""
    ready_replicas: int
    starting_replicas: int
    """Created and not ready yet."""
    pending_replicas: int
    """Asked for and unschedulable: no accelerator is free."""
    draining_replicas: int
    """Serving their last requests; not part of the count that was asked for."""
    arrivals: int
    """Requests that came to the router so far."""
    rejected: int
    """Of these: refused because they could never fit into the KV cache."""
    held_requests: int
    """Requests that wait at the router because no replica is ready."""
    replica: Ints
    """Number of the replica: the same in `RequestResults.replica` and `ReplicaLife.number`."""
    is_draining: NDArray[np.bool_]
    in_flight: Ints
    running: Ints
    waiting: Ints
    kv_used_tokens: Ints
    kv_usage: Floats
    """Share of blocks in use. 0..1"""
    routed: Ints
    """Counter of requests that the router sent."""
    finished: Ints
    prompt_tokens: Ints
    generation_tokens: Floats
    preemptions: Ints
    prefix_queries_tokens: Ints
    prefix_hits_tokens: Ints
    busy_s: Floats
    """Time in steps that have ended. [s]"""
    time_to_first_token: Histogram
    inter_token_latency: Histogram
    time_per_output_token: Histogram
    residence_time: Histogram
    """From arrival at the replica to the last token."""
    waiting_time: Histogram
    """From the engine's queue to the batch."""
