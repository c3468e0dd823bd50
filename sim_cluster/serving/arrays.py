"""Building and growing the arrays of the compiled event loop."""

import math
from typing import Any

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.buckets import FIRST_TOKEN_BOUNDS_S, REQUEST_BOUNDS_S, TOKEN_BOUNDS_S
from sim_cluster.serving.compiled.state import (
    NOBODY,
    REPLICA,
    REQUEST,
    ROUTER,
    Floats,
    Histograms,
    Ints,
    Machine,
    Records,
    State,
)
from sim_cluster.serving.limits import EngineLimits

SEED_SPREAD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: neighbouring seeds begin far apart (Knuth's multiplicative hash)."""

FIRST_SLOTS = 32
"""Replicas alive at once before the arrays grow."""


def machine_of(step_time: StepTime, limits: EngineLimits) -> Machine:
    """Flatten what the compiled loop needs of a replica."""
    if not step_time.decode_s(1.0, 1.0, 1.0) > 0:
        raise ModelError("step_time of one sequence must be > 0 s, got 0")
    return Machine(
        fixed_s=float(step_time.fixed_s),
        weights_read_s=float(step_time.weights_read_s),
        experts_read_s=float(step_time.experts_read_s),
        kv_read_s_per_token=float(step_time.kv_read_s_per_token),
        window_read_s_per_token=float(step_time.window_read_s_per_token),
        window_tokens=int(step_time.window_tokens),
        token_compute_s=float(step_time.token_compute_s),
        context_compute_s_per_token=float(step_time.context_compute_s_per_token),
        sequence_s=float(step_time.sequence_s),
        prefill_token_s=float(step_time.prefill_token_s),
        prefill_pair_s=float(step_time.prefill_pair_s),
        request_s=float(step_time.request_s),
        tokens_per_step=float(step_time.tokens_per_step),
        max_sequences=limits.max_sequences,
        step_token_budget=limits.step_token_budget,
        blocks=limits.blocks,
        watermark_blocks=limits.watermark_blocks,
        units_per_block=limits.units_per_block(step_time.tokens_per_step),
    )


def touched_shares(step_time: StepTime, max_sequences: int) -> Floats:
    """Share of experts that 0, 1, 2, ... sequences touch, by multiplication alone."""
    missed = np.full(max_sequences + 1, float(step_time.expert_miss_probability))
    missed[0] = 1.0
    return 1.0 - np.multiply.accumulate(missed)


def request_records(arrivals: Arrivals, room_tokens: int) -> Records:
    """Lay out requests before anything has happened; those that can never finish have no prompt."""
    records = np.zeros(len(arrivals), REQUEST)
    total = arrivals.prompt_tokens.astype(np.int64) + arrivals.output_tokens
    fits = total <= room_tokens
    records["arrival_s"] = arrivals.t_s
    records["prompt_tokens"] = np.where(fits, arrivals.prompt_tokens, 0)
    records["prefill_tokens"] = records["prompt_tokens"]
    records["output_tokens"] = arrivals.output_tokens
    records["cached_tokens"] = arrivals.cached_prompt_tokens
    records["next"] = records["replica"] = NOBODY
    for moment in ("admitted_s", "first_token_s", "finished_s"):
        records[moment] = math.nan
    return records


def new_state(
    arrivals: Arrivals, step_time: StepTime, limits: EngineLimits, *, policy: int, seed: int
) -> State:
    """Allocate a fleet without replicas."""
    router = np.zeros(1, ROUTER)
    router["policy"] = policy
    router["turn"] = NOBODY
    router["random"] = ((seed + 1) * SEED_SPREAD) % 2**64 or 1  # xorshift64* must not start at 0
    machine = machine_of(step_time, limits)
    empty = _slots(0, machine, has_window=step_time.window_tokens > 0)
    state = State(
        machine=machine,
        touched_share=touched_shares(step_time, limits.max_sequences),
        requests=request_records(arrivals, limits.room_tokens(step_time.tokens_per_step)),
        router=router,
        first_token_bounds=np.array(FIRST_TOKEN_BOUNDS_S),
        token_bounds=np.array(TOKEN_BOUNDS_S),
        request_bounds=np.array(REQUEST_BOUNDS_S),
        **empty,
    )
    return grown(state, FIRST_SLOTS)


def grown(state: State, slots: int) -> State:
    """Copy a fleet into arrays with more slots, a power of two."""
    before = state.replicas.size
    fresh = _slots(slots, state.machine, has_window=state.machine.window_tokens > 0)
    for name, array in fresh.items():
        if isinstance(array, Histograms):
            for old, new in zip(state.histograms, array, strict=True):
                new[:before] = old
        elif name != "winners":
            array[:before] = getattr(state, name)
    fill_tournament(fresh["winners"], fresh["next_event_s"])
    return state._replace(**fresh)


def fill_tournament(winners: Ints, times: Floats) -> None:
    """Play every match of the tournament tree anew."""
    half = winners.size // 2
    winners[half:] = np.arange(half)
    for node in range(half - 1, 0, -1):
        left, right = winners[2 * node], winners[2 * node + 1]
        winners[node] = left if times[left] <= times[right] else right


def clear_slot(state: State, slot: int, *, life: int, now_s: float) -> None:
    """Make a slot an idle replica with an empty cache and counters at zero."""
    state.replicas[slot] = np.zeros((), REPLICA)
    one = state.replicas[slot]
    one["begin_s"] = one["phase_since_s"] = now_s
    one["partial"] = one["completing_head"] = NOBODY
    one["free_blocks"] = state.machine.blocks
    one["life"] = life
    state.phases[slot] = 0
    state.loads[slot] = 0
    state.next_event_s[slot] = math.inf
    fill_tournament(state.winners, state.next_event_s)
    for counts in state.histograms:
        counts[slot] = 0


def hold(state: State, index: int) -> None:
    """Put a request behind those that the router holds until a replica is ready."""
    router = state.router[0]
    state.requests["next"][index] = NOBODY
    if router["held"]:
        state.requests["next"][router["held_tail"]] = index
    else:
        router["held_head"] = index
    router["held_tail"] = index
    router["held"] += 1


def _slots(slots: int, machine: Machine, *, has_window: bool) -> dict[str, Any]:
    crossings = machine.max_sequences if has_window else 1

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return {
        "replicas": np.zeros(slots, REPLICA),
        "finish_keys": ints(slots, machine.max_sequences),
        "finish_ids": ints(slots, machine.max_sequences),
        "cross_keys": ints(slots, crossings),
        "cross_ids": ints(slots, crossings),
        "phases": ints(slots, machine.units_per_block),
        "next_event_s": np.full(slots, math.inf),
        "winners": ints(2 * max(slots, 1)),
        "loads": ints(slots),
        "routable": ints(slots),
        "histograms": Histograms(
            time_to_first_token=ints(slots, len(FIRST_TOKEN_BOUNDS_S) + 1),
            inter_token_latency=ints(slots, len(TOKEN_BOUNDS_S) + 1),
            time_per_output_token=ints(slots, len(TOKEN_BOUNDS_S) + 1),
            residence_time=ints(slots, len(REQUEST_BOUNDS_S) + 1),
            waiting_time=ints(slots, len(REQUEST_BOUNDS_S) + 1),
        ),
    }
