"""
Many deployments at once: what each does under an arrival rate, a number in flight, or saturation.

The three questions of a benchmark table. Everything is an array operation over all cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from fleetline.model.distribution import Latency
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import time_to_first_token
from fleetline.model.loop import Loop, observed_loop
from fleetline.model.replica import Replica
from fleetline.model.settling import closed, settle
from fleetline.model.slots import batch_limit, kv_limit, prefill_limit, saturated
from fleetline.model.workload import Workload

TAIL: Final = 0.95
DELIVERY_STEPS: Final = 0.5
"""Steps between the end of the step that made a token and its arrival at a client: engines send
the results of one step while the next one runs. [steps]"""
WAITING: Final = 0.02
"""Share of the requests in flight outside the batch from which on the batch is what binds."""


OFFLINE_HOST_SHARE: Final = 0.22
"""Host-side time of a sequence without HTTP and streaming, relative to serving: fitted together
with the step time on 222 saturated rows of an offline benchmark."""


class Question(StrEnum):
    """What is given."""

    RATE = "rate"
    IN_FLIGHT = "in flight"
    SATURATED = "saturated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One deployment of one replica, and what is given of its load."""

    replica: Replica
    workload: Workload
    question: Question
    load: float = 0.0
    """Arrival rate [1/s] or requests in flight, of the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """One element a case, for the replica."""

    time_per_output_token_s: Array
    inter_token_latency_s: Array
    time_to_first_token_s: Array
    time_to_first_token_p95_s: Array
    concurrency: Array
    token_rate_per_s: Array
    capacity_per_s: Array
    limits: tuple[str, ...]


def predict(cases: Sequence[Case]) -> Predictions:
    """Answer all cases; one above its capacity is `unstable`, with infinite latencies."""
    lanes = Lanes.of([(case.replica, case.workload, 1) for case in cases])
    outputs = _row([case.workload.lengths.mean_output_tokens for case in cases])
    kinds = np.array([case.question for case in cases])
    load = _row([case.load for case in cases]) / lanes.lanes
    full = saturated(lanes)
    capacity = full.arrival_rate_per_s
    rated, first, tail = _open(lanes, load, capacity)
    held, waited, late = _closed(lanes, np.where(load >= 1.0, load, 1.0))
    # Saturated: as many in flight as fill the batch; what waits outside is not counted.
    packed, packed_first, packed_tail = _closed(lanes, np.maximum(batch_limit(lanes), 1.0))

    def pick(by_rate: Array, in_flight: Array, at_most: Array) -> Array:
        columns = [by_rate[:, 0], in_flight[:, 0], at_most[:, 0]]
        return np.select([kinds == one for one in Question], columns)

    rate = pick(load, held.arrival_rate_per_s, packed.arrival_rate_per_s)
    step = pick(rated.token_s, held.token_s, packed.token_s)
    token = step / lanes.step["tokens_per_step"][:, 0]
    sent_s = DELIVERY_STEPS * step
    first_s = pick(first, waited, packed_first) + np.where(kinds == Question.RATE, sent_s, 0.0)
    unstable = (kinds == Question.RATE) & (load[:, 0] >= capacity[:, 0])
    infinite = np.where(unstable, np.inf, 1.0)
    side = lanes.lanes[:, 0]
    inside = rate * (first_s + (outputs[:, 0] - 1.0) * token)
    return Predictions(
        time_per_output_token_s=token * infinite,
        inter_token_latency_s=step * infinite,
        time_to_first_token_s=first_s * infinite,
        time_to_first_token_p95_s=(pick(tail, late, packed_tail) + sent_s) * infinite,
        concurrency=inside * side * infinite,
        token_rate_per_s=np.where(unstable, capacity[:, 0], rate) * outputs[:, 0] * side,
        capacity_per_s=capacity[:, 0] * side,
        limits=tuple(_limits(lanes, kinds, unstable, held)),
    )


def offline(replica: Replica) -> Replica:
    """Return the replica without the host-side work of serving clients one by one."""
    efficiency = replica.accelerator.efficiency
    quicker = replace(efficiency, sequence_s=OFFLINE_HOST_SHARE * efficiency.sequence_s)
    return replace(replica, accelerator=replace(replica.accelerator, efficiency=quicker))


def observe(
    cases: Sequence[Case], decoding: Array, arrival_rate_per_s: Array
) -> tuple[Array, Array]:
    """
    Mean TPOT and mean TTFT at a measured number in the batch and a measured arrival rate. [s]

    Both are of the whole replica, one element a case; nothing is amplified by the loop gain.
    """
    lanes = Lanes.of([(case.replica, case.workload, 1) for case in cases])
    loop = observed_loop(
        lanes, _row(decoding) / lanes.lanes, _row(arrival_rate_per_s) / lanes.lanes
    )
    free = np.full_like(loop.arrival_rate_per_s, np.inf)
    first = time_to_first_token(lanes, loop, free).overall_mean_s() + DELIVERY_STEPS * loop.token_s
    return (loop.token_s / lanes.step["tokens_per_step"])[:, 0], first[:, 0]


def _open(lanes: Lanes, load: Array, capacity: Array) -> tuple[Loop, Array, Array]:
    """State, mean TTFT and its 95th percentile at an arrival rate."""
    loop = settle(lanes, np.clip(load, 1e-9, 0.9999 * capacity))
    first = time_to_first_token(lanes, loop, capacity)
    return loop, first.overall_mean_s(), first.percentile_s(TAIL)


def _closed(lanes: Lanes, in_flight: Array) -> tuple[Loop, Array, Array]:
    """State, mean TTFT and its 95th percentile with a fixed number in flight."""
    loop, mean_s = closed(lanes, in_flight)
    free = np.full_like(loop.arrival_rate_per_s, np.inf)
    alone = time_to_first_token(lanes, loop, free)
    rest = np.maximum(1.0 - 1.0 / in_flight, 0.0)[..., np.newaxis]
    shift = mean_s - alone.overall_mean_s()
    moved = Latency(
        mean_s=alone.mean_s + shift[..., np.newaxis],
        variance_s2=alone.variance_s2 * rest,
        shift_s=np.minimum(alone.shift_s, alone.mean_s) + shift[..., np.newaxis],
        weights=alone.weights,
    )
    return loop, mean_s, np.maximum(moved.percentile_s(TAIL), mean_s)


def _limits(lanes: Lanes, kinds: Array, unstable: Array, held: Loop) -> list[str]:
    """`none`, or what keeps requests outside the batch."""
    kv, slots = kv_limit(lanes)[:, 0], lanes.max_sequences[:, 0]
    prefill = prefill_limit(lanes)[:, 0]
    names = np.where(
        prefill < np.minimum(kv, slots),
        "PrefillCompute",
        np.where(slots <= kv, "Slots", "KVCache"),
    )
    full = held.decoding[:, 0] >= (1.0 - WAITING) * np.minimum(np.minimum(kv, slots), prefill)
    binds = (kinds == Question.SATURATED) | ((kinds == Question.IN_FLIGHT) & full)
    chosen = np.where(unstable, "unstable", np.where(binds, names, "none"))
    return [str(name) for name in chosen]


def _row(values: Sequence[float] | Array) -> Array:
    return np.array(values, dtype=np.float64)[:, np.newaxis]
