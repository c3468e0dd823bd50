"""
Throughput against latency of one replica: the curve, its ridge, its knee and where objectives cut.

    ridge: where a decode step turns from waiting for memory to waiting for arithmetic
    knee:  where throughput over residence time is largest (Kleinrock's power)
    cut:   the ceiling, the last rate at which every objective holds
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetline.control.plan import cost_usd_per_million_tokens
from fleetline.errors import ModelError
from fleetline.model.ceiling import Ceiling, ceiling
from fleetline.model.kv_cache import kv_limit_requests
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import OperatingPoint, capacity_per_s, operate
from fleetline.model.replica import Replica
from fleetline.model.roofline import is_memory_bound, step_bytes, step_flop
from fleetline.model.workload import Workload

SHARES_OF_CAPACITY = (
    *(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55),
    *(0.6, 0.65, 0.7, 0.74, 0.78, 0.82, 0.85, 0.88, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.99),
)
"""Where the curve is drawn: closer together towards saturation, where it bends."""

MOST_SEQUENCES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One rate on the curve, for one replica."""

    arrival_rate_per_s: float
    concurrency: float
    output_token_rate_per_s: float
    time_to_first_token_s: float
    time_to_first_token_p95_s: float
    time_per_output_token_s: float
    time_per_output_token_p95_s: float
    residence_time_s: float
    loop_gain: float
    goodput_per_s: float
    """Requests per second that meet all objectives. [1/s]"""
    bandwidth_utilization: float
    """Share of the data sheet's bandwidth that decode steps use. 0..1"""
    flop_utilization: float
    """Share of the data sheet's arithmetic that prompts and decode use. 0..1"""
    cost_usd_per_million_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The curve and the places on it that have names."""

    points: tuple[CurvePoint, ...]
    capacity_per_s: float
    """Where the queue stops draining. [1/s]"""
    knee: CurvePoint
    ridge_sequences: float | None
    """Batch from which decode waits for arithmetic; None if reading the KV cache always takes
    longer. [requests]"""
    weights_ridge_sequences: float | None
    """The same if only the weights had to be read: the ridge point of the data sheet. [requests]"""
    kv_limit_requests: float
    """Sequences at which the KV cache is full. [requests]"""
    cut: Ceiling | None
    """The ceiling at the objectives; None without objectives."""
    operating: CurvePoint | None
    """The point at the rate asked for; None without one, or beyond saturation."""


def draw_curve(
    replica: Replica,
    workload: Workload,
    *,
    objectives: Sequence[Objective] = (),
    arrival_rate_per_s: float | None = None,
    price_usd_per_hour: float | None = None,
) -> Curve:
    """
    Sweep the arrival rate of one replica from idle to saturation.

    Raises
    ------
    ModelError
        If the model does not fit, or the asked rate is not positive.
    """
    if arrival_rate_per_s is not None and not arrival_rate_per_s > 0:
        raise ModelError(f"rate must be > 0 requests/s, got {arrival_rate_per_s:g}")
    most_per_s = capacity_per_s(replica, workload)

    def at(rate_per_s: float) -> CurvePoint:
        point = operate(replica, workload, rate_per_s)
        return _point(replica, workload, point, objectives, price_usd_per_hour)

    points = tuple(at(share * most_per_s) for share in SHARES_OF_CAPACITY)
    asked = arrival_rate_per_s
    return Curve(
        points=points,
        capacity_per_s=most_per_s,
        knee=max(points, key=lambda point: point.arrival_rate_per_s / point.residence_time_s),
        ridge_sequences=ridge_sequences(replica, context_tokens=mean_context_tokens(workload)),
        weights_ridge_sequences=ridge_sequences(replica, context_tokens=0.0),
        kv_limit_requests=kv_limit_requests(replica, workload.lengths),
        cut=ceiling(replica, workload, objectives) if objectives else None,
        operating=at(asked) if asked is not None and asked < most_per_s else None,
    )


def mean_context_tokens(workload: Workload) -> float:
    """Context that a running sequence reads on average over its life. [tokens]"""
    lengths = workload.lengths
    held = lengths.prompt_tokens + lengths.output_tokens / 2
    share = lengths.weights * lengths.output_tokens
    return float(np.sum(share * held) / np.sum(share))


def ridge_sequences(replica: Replica, *, context_tokens: float) -> float | None:
    """Smallest batch whose decode step waits for arithmetic; None if no batch does. [requests]"""

    def waits_for_memory(sequences: int) -> bool:
        return is_memory_bound(
            replica, sequences=sequences, context_tokens=sequences * context_tokens
        )

    low, high = 1, MOST_SEQUENCES
    if waits_for_memory(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits_for_memory(middle) else (low, middle)
    return float(high)


def _point(
    replica: Replica,
    workload: Workload,
    point: OperatingPoint,
    objectives: Sequence[Objective],
    price_usd_per_hour: float | None,
) -> CurvePoint:
    lengths = workload.lengths
    token_rate = point.arrival_rate_per_s * lengths.mean_output_tokens
    decoding = max(1.0, token_rate * point.time_per_output_token_s)
    context = decoding * mean_context_tokens(workload)
    steps_per_s = token_rate / decoding
    moved = step_bytes(replica, sequences=decoding, context_tokens=context) * steps_per_s
    prompt_rate = point.arrival_rate_per_s * lengths.mean_prompt_tokens
    worked = step_flop(replica, sequences=decoding, context_tokens=context) * steps_per_s
    worked += step_flop(replica, sequences=prompt_rate, context_tokens=0.0)
    hardware = replica.accelerator
    count = replica.accelerators
    inside = min((point.attainment(one.metric, one.target_s) for one in objectives), default=1.0)
    return CurvePoint(
        arrival_rate_per_s=point.arrival_rate_per_s,
        concurrency=point.concurrency,
        output_token_rate_per_s=token_rate,
        time_to_first_token_s=point.time_to_first_token_s,
        time_to_first_token_p95_s=point.percentile_s(Metric.TIME_TO_FIRST_TOKEN, 95),
        time_per_output_token_s=point.time_per_output_token_s,
        time_per_output_token_p95_s=point.percentile_s(Metric.TIME_PER_OUTPUT_TOKEN, 95),
        residence_time_s=point.residence_time_s,
        loop_gain=point.loop_gain,
        goodput_per_s=point.arrival_rate_per_s * inside,
        bandwidth_utilization=moved / (count * hardware.bandwidth_bytes_per_s),
        flop_utilization=worked / (count * hardware.compute_flop_per_s(replica.weight_precision)),
        cost_usd_per_million_tokens=(
            None
            if price_usd_per_hour is None
            else cost_usd_per_million_tokens(price_usd_per_hour * count, token_rate)
        ),
    )
