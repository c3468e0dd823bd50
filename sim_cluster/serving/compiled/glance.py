"""What an engine's `/metrics` would show at a moment, the run of steps in progress included."""

import numpy as np

from sim_cluster.serving.compiled.blocks import blocks_needed
from sim_cluster.serving.compiled.histogram import observe_run
from sim_cluster.serving.compiled.jit import compiled, entry
from sim_cluster.serving.compiled.series import run_time_s, steps_by
from sim_cluster.serving.compiled.state import LEAPING, Ints, Record, Records, State

GLANCE = np.dtype(
    [
        ("in_flight", np.int64),
        ("running", np.int64),
        ("waiting", np.int64),
        ("used_blocks", np.int64),
        ("generation_tokens", np.float64),
        ("inter_token_latency_sum_s", np.float64),
        ("busy_s", np.float64),
        ("waiting_area_s", np.float64),
        ("prefill_area_s", np.float64),
        ("decode_area_s", np.float64),
    ],
    align=True,
)


@entry
def glance(state: State, now_s: float, slots: Ints, seen: Records, token_gaps: Ints) -> None:
    """Fill `seen` and add to the histogram of token gaps, one row for each of the slots."""
    for row in range(slots.size):
        slot = slots[row]
        one = state.replicas[slot]
        view = seen[row]
        view.in_flight = one.in_flight
        view.running = one.running
        view.waiting = waiting(state, one, now_s)
        view.used_blocks = state.machine.blocks - one.free_blocks
        view.generation_tokens = one.generation_tokens
        view.inter_token_latency_sum_s = one.inter_token_latency_sum_s
        view.busy_s = one.busy_s
        elapsed_s = now_s - one.phase_since_s
        view.waiting_area_s = one.waiting_area_s + one.waiting_phase * elapsed_s
        view.prefill_area_s = one.prefill_area_s + one.prefill_phase * elapsed_s
        view.decode_area_s = one.decode_area_s + one.decode_phase * elapsed_s
        if one.activity == LEAPING:
            add_run(state, slot, now_s, row, view, token_gaps)


@compiled
def add_run(
    state: State, slot: int, now_s: float, row: int, view: Record, token_gaps: Ints
) -> None:
    """Add the steps of the run in progress that have ended."""
    one = state.replicas[slot]
    steps = steps_by(one, now_s)
    view.used_blocks += blocks_needed(state, slot, min(steps + 1, one.steps))
    if steps == 0:
        return
    took_s = run_time_s(one, steps)
    view.busy_s += took_s
    view.generation_tokens += one.decoding * state.machine.tokens_per_step * steps
    view.inter_token_latency_sum_s += one.decoding * took_s
    observe_run(token_gaps, row, state.token_bounds, one, steps, one.decoding)


@compiled
def waiting(state: State, one: Record, now_s: float) -> int:
    """Count the requests in the engine's queue, without those still in its front end."""
    if one.queued == 0 or state.requests[one.queue_tail].ready_s <= now_s:
        return one.queued
    count, index = 0, one.queue_head
    while state.requests[index].ready_s <= now_s:
        count += 1
        index = state.requests[index].next
    return count
