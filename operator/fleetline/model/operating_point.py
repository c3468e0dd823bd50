"""Where a replica settles at an arrival rate: L, W, the loop gain and the latency chain."""

import math
from dataclasses import dataclass

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.distribution import Latency
from fleetline.model.first_token import own_prefill_s, prefill_wait
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import latency_of, time_per_output_token, time_to_first_token
from fleetline.model.loop import Loop
from fleetline.model.objective import Metric
from fleetline.model.replica import Replica
from fleetline.model.settling import settle
from fleetline.model.slots import saturated, slot_wait
from fleetline.model.workload import Workload


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
        latency = latency_of(metric, self.lanes, self.loop, self._capacity())
        return float(latency.percentile_s(percentile / 100.0)[0, 0])

    def attainment(self, metric: Metric, target_s: float) -> float:
        """Share of requests whose latency is at or below a target. 0..1"""
        if self.lanes is None or self.loop is None:
            return 0.0
        latency = latency_of(metric, self.lanes, self.loop, self._capacity())
        return float(latency.attainment(target_s)[0, 0])

    def _capacity(self) -> Array | None:
        if self.lanes is None:
            return None
        return self.capacity_per_s / self.lanes.lanes


def capacity_per_s(replica: Replica, workload: Workload) -> float:
    """Arrival rate per replica from which on the queue does not drain. [1/s]"""
    lanes = Lanes.of([(replica, workload, 1)])
    return float(saturated(lanes).arrival_rate_per_s[0, 0]) * replica.lanes


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
    check_fit(replica, lanes)
    most = saturated(lanes).arrival_rate_per_s
    capacity = float(most[0, 0]) * replica.lanes
    if arrival_rate_per_s >= capacity:
        return _unstable(arrival_rate_per_s, capacity)
    loop = settle(lanes, np.array([[arrival_rate_per_s / replica.lanes]]))
    first = float(time_to_first_token(lanes, loop, most).overall_mean_s()[0, 0])
    step = float(loop.token_s[0, 0])
    token = step / replica.tokens_per_step
    residence = first + (workload.lengths.mean_output_tokens - 1.0) * token
    return OperatingPoint(
        arrival_rate_per_s=arrival_rate_per_s,
        capacity_per_s=capacity,
        is_stable=True,
        concurrency=arrival_rate_per_s * residence,
        residence_time_s=residence,
        loop_gain=float(loop.loop_gain[0, 0]),
        utilization_of_prefill=float(loop.prefill_utilization[0, 0]),
        time_to_first_token_s=first,
        time_per_output_token_s=token,
        inter_token_latency_s=step,
        chain=_chain(lanes, loop, most),
        lanes=lanes,
        loop=loop,
    )


def check_fit(replica: Replica, lanes: Lanes) -> None:
    """Raise ModelError if not even one mean request fits into the KV cache."""
    if not lanes.batch_limit[0, 0] >= 1:
        raise ModelError(
            f"KV cache of {replica.accelerator.name} must be >= one request of "
            f"{float(lanes.context_tokens[0, 0]):.0f} tokens beside {replica.architecture.name}, "
            f"got {float(lanes.kv_capacity_tokens[0, 0]):.0f} tokens"
        )


def _chain(lanes: Lanes, loop: Loop, capacity: Array) -> tuple[Link, ...]:
    own, gaps = own_prefill_s(lanes, loop), lanes.kinds.output_tokens - 1.0
    first = np.minimum(np.broadcast_to(loop.step_s[..., np.newaxis], own.shape), own)
    token, wait = time_per_output_token(lanes, loop), prefill_wait(lanes, loop)
    share, slot = slot_wait(lanes, loop, capacity)
    chain = {
        "request": _alike(lanes.step["request_s"], 0.0 * share),
        "slot wait": _alike(share * slot.mean_s, share * (2.0 - share) * slot.variance_s2),
        "prefill wait": _alike(wait.mean_s, wait.variance_s2),
        "own prefill": _fixed(own - first, lanes),
        "first step": _fixed(first, lanes),
        "decode": Latency(
            shift_s=gaps * token.shift_s,
            excess_s=gaps * token.excess_s,
            variance_s2=gaps * gaps * token.variance_s2
            + lanes.kinds.output_variance * token.mean_s**2,
            weights=lanes.kinds.weights,
        ),
    }
    return tuple(Link(name=name, latency=latency) for name, latency in chain.items())


def _fixed(by_kind_s: Array, lanes: Lanes) -> Latency:
    """Return a link that varies by the kind of request alone."""
    return Latency(
        shift_s=by_kind_s,
        excess_s=0.0 * by_kind_s,
        variance_s2=0.0 * by_kind_s,
        weights=lanes.kinds.weights,
    )


def _alike(mean_s: Array, variance_s2: Array) -> Latency:
    """Return a link that is the same for all kinds of requests."""
    one = np.ones((1, 1, 1))
    return Latency(
        shift_s=0.0 * one,
        excess_s=mean_s.reshape(1, 1, 1),
        variance_s2=np.maximum(variance_s2, 0.0).reshape(1, 1, 1),
        weights=one,
    )


def _unstable(arrival_rate_per_s: float, capacity_per_s: float) -> OperatingPoint:
    return OperatingPoint(
        arrival_rate_per_s=arrival_rate_per_s,
        capacity_per_s=capacity_per_s,
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
