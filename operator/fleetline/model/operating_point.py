"""Where a replica settles at an arrival rate: L, W, the loop gain and the latency chain."""

import math
from dataclasses import dataclass

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.lanes import Array, Lanes
from fleetline.model.latency import (
    Latency,
    latency_of,
    own_prefill_s,
    prefill_wait,
    slot_wait,
    time_per_output_token,
    time_to_first_token,
)
from fleetline.model.loop import Loop, closed_loop, decode_limit, open_loop
from fleetline.model.objective import Metric
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

BISECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One link of the latency chain."""

    name: str
    latency: Latency

    @property
    def mean_s(self) -> float:
        """Mean over all requests. [s]"""
        return float(self.latency.overall_mean_s()[0, 0])

    def percentile_s(self, percentile: float) -> float:
        """Percentile (0 to 100, exclusive) of this link alone. [s]"""
        return float(self.latency.percentile_s(percentile / 100.0)[0, 0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatingPoint:
    """What one replica does at one arrival rate; infinite latencies if it has no steady state."""

    arrival_rate_per_s: float
    capacity_per_s: float
    """Arrival rate from which on the queue does not drain. [1/s]"""
    is_stable: bool
    concurrency: float
    """Requests inside the replica, L. [requests]"""
    residence_time_s: float
    """Arrival to last token, W = L / lambda. [s]"""
    loop_gain: float
    utilization_of_prefill: float
    time_to_first_token_s: float
    time_per_output_token_s: float
    inter_token_latency_s: float
    chain: tuple[Link, ...]
    lanes: Lanes | None = None
    loop: Loop | None = None

    def percentile_s(self, metric: Metric, percentile: float) -> float:
        """Percentile (0 to 100, exclusive) of a latency. [s]"""
        if self.lanes is None or self.loop is None:
            return math.inf
        latency = latency_of(metric, self.lanes, self.loop)
        return float(latency.percentile_s(percentile / 100.0)[0, 0])

    def attainment(self, metric: Metric, target_s: float) -> float:
        """Share of requests whose latency is at or below a target. 0..1"""
        if self.lanes is None or self.loop is None:
            return 0.0
        return float(latency_of(metric, self.lanes, self.loop).attainment(target_s)[0, 0])


def capacity_per_s(replica: Replica, workload: Workload) -> float:
    """Arrival rate per replica from which on the queue does not drain. [1/s]"""
    lanes = Lanes.of([(replica, workload, 1)])
    limit = np.maximum(decode_limit(lanes), 1e-9)
    return float(closed_loop(lanes, limit).arrival_rate_per_s[0, 0]) * replica.lanes


def operate(
    replica: Replica, workload: Workload, arrival_rate_per_s: float, *, replicas: int = 1
) -> OperatingPoint:
    """
    Solve the fixed point L = lambda W(L) of one replica.

    Parameters
    ----------
    replica, workload
        What serves, and what arrives.
    arrival_rate_per_s
        Requests per second at this replica. [1/s], >= 0
    replicas
        Replicas behind one least-loaded router; each gets the same rate.

    Raises
    ------
    ModelError
        If the arrival rate is negative or the model does not fit in memory.
    """
    if not arrival_rate_per_s >= 0:
        raise ModelError(f"arrival_rate must be >= 0 requests/s, got {arrival_rate_per_s:g}")
    lanes = Lanes.of([(replica, workload, replicas)])
    limit = decode_limit(lanes)
    if not limit[0, 0] >= 1:
        raise ModelError(
            f"KV cache must be >= one request, got {lanes.kv_capacity_tokens[0, 0]:.0f} tokens"
        )
    most = float(closed_loop(lanes, limit).arrival_rate_per_s[0, 0])
    rate = arrival_rate_per_s / replica.lanes
    if rate >= most:
        return _unstable(arrival_rate_per_s, most * replica.lanes)
    low, high = 0.0, float(limit[0, 0]) * 4.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        state = open_loop(lanes, np.array([[middle]]))
        low, high = (middle, high) if state.arrival_rate_per_s[0, 0] < rate else (low, middle)
    loop = open_loop(lanes, np.array([[high]]))
    first = float(time_to_first_token(lanes, loop).overall_mean_s()[0, 0])
    token = float(loop.token_s[0, 0]) / replica.tokens_per_step
    outputs = workload.lengths.mean_output_tokens
    residence = first + (outputs - 1.0) * token
    return OperatingPoint(
        arrival_rate_per_s=arrival_rate_per_s,
        capacity_per_s=most * replica.lanes,
        is_stable=True,
        concurrency=arrival_rate_per_s * residence,
        residence_time_s=residence,
        loop_gain=float(loop.loop_gain[0, 0]),
        utilization_of_prefill=float(loop.prefill_utilization[0, 0]),
        time_to_first_token_s=first,
        time_per_output_token_s=token,
        inter_token_latency_s=token,
        chain=_chain(lanes, loop),
        lanes=lanes,
        loop=loop,
    )


def _chain(lanes: Lanes, loop: Loop) -> tuple[Link, ...]:
    def same_for_all(mean: Array, variance: Array) -> Latency:
        nothing = np.zeros((1, 1, 1))
        return Latency(
            mean_s=mean.reshape(1, 1, 1),
            variance_s2=np.maximum(variance, 0.0).reshape(1, 1, 1),
            shift_s=nothing,
            weights=nothing + 1.0,
        )

    own = own_prefill_s(lanes, loop)
    gaps = lanes.kinds.output_tokens - 1.0
    token = time_per_output_token(lanes, loop)
    request, step = lanes.step["request_s"], loop.step_s
    by_kind = {
        "own prefill": Latency(
            mean_s=own, variance_s2=0.0 * own, shift_s=own, weights=lanes.kinds.weights
        ),
        "decode": Latency(
            mean_s=gaps * token.mean_s,
            variance_s2=gaps * gaps * token.variance_s2,
            shift_s=gaps * token.shift_s,
            weights=lanes.kinds.weights,
        ),
    }
    waits = {
        "request": same_for_all(request, 0.0 * request),
        "slot wait": same_for_all(*slot_wait(lanes, loop)),
        "residual step": same_for_all(step / 2.0, step * step / 12.0),
        "prefill wait": same_for_all(*prefill_wait(lanes, loop)),
    }
    return tuple(Link(name=name, latency=latency) for name, latency in (waits | by_kind).items())


def _unstable(arrival_rate_per_s: float, capacity: float) -> OperatingPoint:
    return OperatingPoint(
        arrival_rate_per_s=arrival_rate_per_s,
        capacity_per_s=capacity,
        is_stable=False,
        concurrency=math.inf,
        residence_time_s=math.inf,
        loop_gain=math.inf,
        utilization_of_prefill=1.0,
        time_to_first_token_s=math.inf,
        time_per_output_token_s=math.inf,
        inter_token_latency_s=math.inf,
        chain=(),
    )
