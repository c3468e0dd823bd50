"""
Many deployments at once: what each does under an arrival rate, a number in flight, or saturation.

The three questions of a benchmark table. Everything is an array operation over all cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.model.distribution import Latency
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.latency import time_to_first_token
from fleetline.model.loop import Loop, observed_loop
from fleetline.model.replica import Replica
from fleetline.model.settling import closed, settle
from fleetline.model.slots import saturated
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
    asked = [(one, [i for i, case in enumerate(cases) if case.question is one]) for one in Question]
    parts = [(where, _alike([cases[i] for i in where], one)) for one, where in asked if where]
    limits = {
        i: limit for where, part in parts for i, limit in zip(where, part.limits, strict=True)
    }

    def merged(name: str) -> Array:
        values = np.empty(len(cases))
        for where, part in parts:
            values[where] = getattr(part, name)
        return values

    return Predictions(
        **{one.name: merged(one.name) for one in fields(Predictions) if one.name != "limits"},
        limits=tuple(limits[i] for i in range(len(cases))),
    )


def _alike(cases: Sequence[Case], question: Question) -> Predictions:
    """Answer cases of one question."""
    lanes = Lanes.of([(case.replica, case.workload, 1) for case in cases])
    gaps = _row([case.workload.lengths.mean_output_tokens for case in cases])[:, 0] - 1.0
    load = _row([case.load for case in cases]) / lanes.lanes
    capacity = saturated(lanes).arrival_rate_per_s
    if question is Question.RATE:
        loop, first_s, tail_s = _open(lanes, load, capacity)
        rate, full = load[:, 0], np.zeros(len(cases), dtype=bool)
    else:
        # Saturated: as many in flight as fill the batch; what waits outside is not counted.
        fill = load if question is Question.IN_FLIGHT else lanes.batch_limit
        loop, first_s, tail_s = _closed(lanes, np.maximum(fill, 1.0))
        rate = loop.arrival_rate_per_s[:, 0]
        full = _is_full(lanes, loop) | (question is Question.SATURATED)
    step_s = loop.token_s[:, 0]
    token_s = step_s / lanes.step["tokens_per_step"][:, 0]
    sent_s = DELIVERY_STEPS * step_s
    first_s = first_s[:, 0] + (sent_s if question is Question.RATE else 0.0)
    unstable = (question is Question.RATE) & (load[:, 0] >= capacity[:, 0])
    infinite, side = np.where(unstable, np.inf, 1.0), lanes.lanes[:, 0]
    return Predictions(
        time_per_output_token_s=token_s * infinite,
        inter_token_latency_s=step_s * infinite,
        time_to_first_token_s=first_s * infinite,
        time_to_first_token_p95_s=(tail_s[:, 0] + sent_s) * infinite,
        concurrency=rate * (first_s + gaps * token_s) * side * infinite,
        token_rate_per_s=np.where(unstable, capacity[:, 0], rate) * (gaps + 1.0) * side,
        capacity_per_s=capacity[:, 0] * side,
        limits=tuple(_limits(lanes, unstable, full)),
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
        shift_s=alone.shift_s + shift[..., np.newaxis],
        excess_s=alone.excess_s,
        variance_s2=alone.variance_s2 * rest,
        weights=alone.weights,
    )
    return loop, mean_s, np.maximum(moved.percentile_s(TAIL), mean_s)


def _is_full(lanes: Lanes, held: Loop) -> NDArray[np.bool_]:
    """Whether the batch, and not the number in flight, is what binds."""
    most = np.minimum(lanes.batch_limit, lanes.prefill_limit)[:, 0]
    return np.asarray(held.decoding[:, 0] >= (1.0 - WAITING) * most)


def _limits(lanes: Lanes, unstable: NDArray[np.bool_], full: NDArray[np.bool_]) -> list[str]:
    """`none`, or what keeps requests outside the batch."""
    kv, slots = lanes.kv_limit[:, 0], lanes.max_sequences[:, 0]
    prefill = lanes.prefill_limit[:, 0]
    names = np.where(
        prefill < np.minimum(kv, slots),
        "PrefillCompute",
        np.where(slots <= kv, "Slots", "KVCache"),
    )
    chosen = np.where(unstable, "unstable", np.where(full, names, "none"))
    return [str(name) for name in chosen]


def _row(values: Sequence[float] | Array) -> Array:
    return np.array(values, dtype=np.float64)[:, np.newaxis]
