"""
The two branches of the fixed point, and the rate at which they meet.

    lambda(N) rises up to the limit of the batch. Beyond the KV cache's limit preemption computes
    prompts and answers twice, so a replica that once queues serves less than one that does not.

Between the two rates both states are possible: a replica runs calmly, but a burst that fills its
cache leaves it in the congested state until load falls below what that state serves.
"""

from dataclasses import dataclass

import numpy as np

from fleetline.model.lanes import KV_FILL, Lanes
from fleetline.model.loop import closed_loop
from fleetline.model.mixed_step import decode_parts_s
from fleetline.model.replica import Replica
from fleetline.model.settling import settle
from fleetline.model.slots import saturated
from fleetline.model.workload import Workload

PREEMPTED = 0.05
"""Share of the cache's turnover that ends in a preemption: admission is greedy, but answers end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Both branches at one arrival rate, for one replica."""

    meeting_rate_per_s: float
    """Where the stable branch ends: no number in the batch serves more. [1/s]"""
    congested_rate_per_s: float
    """What a replica serves whose KV cache overflows; equal if slots bind first. [1/s]"""
    stable_requests: float
    """Requests in the batch on the stable branch; infinite if there is none. [requests]"""
    unstable_requests: float
    """Requests beyond which the batch does not come back by itself. [requests]"""

    @property
    def is_metastable(self) -> bool:
        """Whether congestion, once there, feeds itself although the calm state exists."""
        return bool(np.isfinite(self.stable_requests) and np.isfinite(self.unstable_requests))


def branches(replica: Replica, workload: Workload, arrival_rate_per_s: float) -> Branches:
    """
    Find the stable and the unstable fixed point at an arrival rate, if they exist.

    Notes
    -----
    In congestion a preempted request repeats its prompt and half its answer as prefill work. On
    average a share of the cache's turnover ends so (see `PREEMPTED`).
    """
    lanes = Lanes.of([(replica, workload, 1)])
    side = replica.lanes
    full = saturated(lanes)
    peak = float(full.arrival_rate_per_s[0, 0]) * side
    by_cache = float(lanes.kv_limit[0, 0]) < float(lanes.max_sequences[0, 0])
    congested = peak * KV_FILL / (1.0 + _repeated_share(lanes)) if by_cache else peak
    limit = float(lanes.batch_limit[0, 0]) * side
    if arrival_rate_per_s >= peak:
        calm = float(np.inf)
    else:
        calm = float(settle(lanes, np.array([[arrival_rate_per_s / side]])).decoding[0, 0]) * side
    threatened = by_cache and congested <= arrival_rate_per_s < peak
    return Branches(
        meeting_rate_per_s=peak,
        congested_rate_per_s=congested,
        stable_requests=calm,
        unstable_requests=limit if threatened else float(np.inf),
    )


def _repeated_share(lanes: Lanes) -> float:
    """Time of repeated prefill work over that of a request's decode steps, in congestion."""
    kinds, step = lanes.kinds, lanes.step
    growth = float((kinds.weights * kinds.output_tokens).sum())
    preemptions = growth / float(lanes.context_tokens[0, 0])
    repeated_s = float(lanes.context_tokens[0, 0] * step["prefill_token_s"][0, 0])
    batch = np.maximum(lanes.batch_limit, 1.0)
    loop = closed_loop(lanes, batch)
    own_s = float((lanes.decode_steps * loop.token_s / batch)[0, 0])
    hidden = float(decode_parts_s(lanes, batch)[1][0, 0])
    return max(preemptions * repeated_s - hidden, 0.0) / max(own_s, 1e-9) * PREEMPTED
