"""Reading the compiled state: snapshots, areas, and who is where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sim_cluster.serving.compiled.glance import GLANCE, glance
from sim_cluster.serving.compiled.state import MIXED, NOBODY, Ints, Records, State
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.lives import ReplicaLife
from sim_cluster.serving.snapshot import Histogram, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseAreas:
    """
    Requests in each phase of life, integrated over time: the L of Little's law times the time.

    Accumulated from counts at every change, not from the moments that requests record.
    """

    waiting_s: float = 0.0
    """Before they first joined the batch. [s]"""
    prefill_s: float = 0.0
    """In the batch, before the first token. [s]"""
    decode_s: float = 0.0
    """After the first token. [s]"""

    def __add__(self, other: Self) -> Self:
        """Areas of two parts of a fleet together."""
        return type(self)(
            waiting_s=self.waiting_s + other.waiting_s,
            prefill_s=self.prefill_s + other.prefill_s,
            decode_s=self.decode_s + other.decode_s,
        )


def look(
    state: State,
    living: Sequence[ReplicaLife],
    limits: EngineLimits,
    *,
    now_s: float,
    asked_replicas: int,
) -> Snapshot:
    """Read what every serving replica shows at a moment."""
    serving = [life for life in living if life.slot is not None]
    slots = np.array([life.slot for life in serving], np.int64)
    seen, gaps = _glance(state, slots, now_s)
    counted = state.replicas[slots]
    used = seen["used_blocks"]
    return Snapshot(
        now_s=now_s,
        asked_replicas=asked_replicas,
        **_stages(living),
        arrivals=int(state.router["next_arrival"][0]),
        rejected=int(state.router["rejected"][0]),
        held_requests=int(state.router["held"][0]),
        replica=counted["life"],
        is_draining=counted["draining"].astype(np.bool_),
        in_flight=seen["in_flight"],
        running=seen["running"],
        waiting=seen["waiting"],
        kv_used_tokens=used * limits.block_tokens,
        kv_usage=used / limits.blocks,
        routed=counted["arrivals"],
        finished=counted["finished"],
        prompt_tokens=counted["prompt_tokens"],
        generation_tokens=seen["generation_tokens"],
        preemptions=counted["preemptions"],
        prefix_queries_tokens=counted["prefix_queries_tokens"],
        prefix_hits_tokens=counted["prefix_hits_tokens"],
        busy_s=seen["busy_s"],
        **_histograms(state, slots, counted, seen, gaps),
    )


def _stages(living: Sequence[ReplicaLife]) -> dict[str, Any]:
    alive = [life for life in living if life.is_alive and not life.is_lost]
    return {
        "ready_replicas": sum(life.slot is not None for life in alive),
        "starting_replicas": sum(life.slot is None and not life.is_pending for life in alive),
        "pending_replicas": sum(life.is_pending for life in alive),
        "draining_replicas": sum(life.is_draining for life in living),
    }


def _histograms(
    state: State, slots: Ints, counted: Records, seen: Records, gaps: Ints
) -> dict[str, Any]:
    kept = state.histograms
    columns = {
        "time_to_first_token": (state.first_token_bounds, kept.time_to_first_token[slots]),
        "inter_token_latency": (state.token_bounds, gaps),
        "time_per_output_token": (state.token_bounds, kept.time_per_output_token[slots]),
        "residence_time": (state.request_bounds, kept.residence_time[slots]),
        "waiting_time": (state.request_bounds, kept.waiting_time[slots]),
    }
    return {
        name: Histogram(
            bounds_s=bounds,
            counts=counts,
            sums_s=(seen if name == "inter_token_latency" else counted)[f"{name}_sum_s"],
        )
        for name, (bounds, counts) in columns.items()
    }


def phase_areas(state: State, living: Sequence[ReplicaLife], *, now_s: float) -> PhaseAreas:
    """Sum of the areas of all serving replicas."""
    total = PhaseAreas()
    for life in living:
        if life.slot is not None:
            total += slot_areas(state, life.slot, now_s=now_s)
    return total


def slot_areas(state: State, slot: int, *, now_s: float) -> PhaseAreas:
    """Areas of one replica."""
    seen, _ = _glance(state, np.array([slot], np.int64), now_s)
    return PhaseAreas(
        waiting_s=float(seen["waiting_area_s"][0]),
        prefill_s=float(seen["prefill_area_s"][0]),
        decode_s=float(seen["decode_area_s"][0]),
    )


def requests_in(state: State, slot: int) -> list[int]:
    """Every request that a replica has."""
    one = state.replicas[slot]
    found = [int(index) for index in state.finish_ids[slot, : one["decoding"]]]
    if one["partial"] != NOBODY:
        found.append(int(one["partial"]))
    if one["activity"] == MIXED:
        found += _follow(state, int(one["completing_head"]))
    if one["queued"]:
        found += _follow(state, int(one["queue_head"]))
    return found


def _follow(state: State, index: int) -> list[int]:
    found = []
    while index != NOBODY:
        found.append(index)
        index = int(state.requests["next"][index])
    return found


def _glance(state: State, slots: Ints, now_s: float) -> tuple[Records, Ints]:
    seen = np.zeros(slots.size, GLANCE)
    gaps = state.histograms.inter_token_latency[slots]
    glance(state, now_s, slots, seen, gaps)
    return seen, gaps
