"""
What a replica does next: one step with prompts in it, or a run of decode steps.

The order is that of the reference: blocks for the answers first, by preemption if need be; then
the prompt in progress; then the queue, unless something was preempted.
"""

import math

from sim_cluster.serving.compiled.batch import preempt_last, prompt_blocks
from sim_cluster.serving.compiled.blocks import blocks_needed, steps_until_full
from sim_cluster.serving.compiled.histogram import observe
from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.phases import admit_phase
from sim_cluster.serving.compiled.queue import complete_later, leave_front
from sim_cluster.serving.compiled.schedule import set_event
from sim_cluster.serving.compiled.series import (
    linear_s,
    prepare_run,
    run_time_s,
    step_at_s,
    steps_reaching,
)
from sim_cluster.serving.compiled.state import (
    IDLE,
    LEAPING,
    MIXED,
    NOBODY,
    WAKING,
    Record,
    State,
)


@compiled
def plan(state: State, slot: int, begin_s: float) -> None:
    """Begin the next step, or run of steps, at that moment."""
    one = state.replicas[slot]
    one.begin_s = begin_s
    preempted = make_room(state, slot, begin_s)
    if one.partial != NOBODY or (not preempted and can_admit(state, one, begin_s)):
        plan_mixed(state, slot, preempted)
    elif one.decoding > 0:
        plan_run(state, slot, preempted)
    elif one.queued > 0:
        one.activity = WAKING
        set_event(state, slot, max(begin_s, state.requests[one.queue_head].ready_s))
    else:
        one.activity = IDLE
        set_event(state, slot, math.inf)


@compiled
def make_room(state: State, slot: int, begin_s: float) -> bool:
    """Preempt until the coming step's blocks are free; say whether that was necessary."""
    one = state.replicas[slot]
    preempted = False
    while one.decoding > 0 and blocks_needed(state, slot, 1) > one.free_blocks:
        preempt_last(state, slot, begin_s)
        preempted = True
    return preempted


@compiled
def has_place(state: State, one: Record) -> bool:
    """Whether slots and blocks allow the first in the queue to join the batch."""
    machine = state.machine
    if one.queued == 0 or one.running >= machine.max_sequences:
        return False
    blocks = prompt_blocks(state, state.requests[one.queue_head])
    watermark = machine.watermark_blocks if one.running > 0 else 0
    return blocks + watermark <= one.free_blocks


@compiled
def can_admit(state: State, one: Record, now_s: float) -> bool:
    """Whether the first in the queue is there and can join the batch."""
    if one.queued == 0 or state.requests[one.queue_head].ready_s > now_s:
        return False
    return has_place(state, one)


@compiled
def plan_mixed(state: State, slot: int, preempted: bool) -> None:  # noqa: FBT001
    """Begin a step that decodes, continues a prompt and admits requests."""
    one, machine = state.replicas[slot], state.machine
    prepare_run(state, one)
    decode_s = step_at_s(one, 0) if one.decoding > 0 else 0.0
    one.free_blocks -= blocks_needed(state, slot, 1)
    one.completing_head = NOBODY
    budget = machine.step_token_budget - one.decoding
    tokens, pairs = 0, 0.0
    if one.partial != NOBODY:
        index = one.partial
        one.partial = NOBODY
        chunk, some = take_chunk(state, one, index, budget)
        tokens, pairs = chunk, some
    while budget > tokens and not preempted and can_admit(state, one, one.begin_s):
        index = leave_front(state, one)
        admit(state, slot, index)
        chunk, some = take_chunk(state, one, index, budget - tokens)
        tokens, pairs = tokens + chunk, pairs + some
    pairs_s = pairs * machine.prefill_pair_s
    if one.decoding > 0:
        more_s = linear_s(state, one.decoding, tokens) - linear_s(state, one.decoding, 0)
        step_s = decode_s + more_s + pairs_s
    else:
        read_s = machine.weights_read_s + machine.experts_read_s
        step_s = machine.fixed_s + max(read_s, tokens * machine.prefill_token_s) + pairs_s
    one.first_s, one.first_slope_s = step_s, 0.0
    one.second_s, one.second_slope_s, one.bend = step_s, 0.0, 1 << 62
    one.steps = 1
    one.activity = MIXED
    set_event(state, slot, one.begin_s + step_s)


@compiled
def admit(state: State, slot: int, index: int) -> None:
    """Give the first in the queue a slot and the blocks of its prompt."""
    one, request = state.replicas[slot], state.requests[index]
    one.free_blocks -= prompt_blocks(state, request)
    one.running += 1
    request.order = one.admissions
    one.admissions += 1
    cached = min(request.cached_tokens, request.prompt_tokens - 1)
    request.computed_tokens = cached
    one.prefix_queries_tokens += request.prefill_tokens
    one.prefix_hits_tokens += cached
    if math.isnan(request.admitted_s):
        request.admitted_s = one.begin_s
        admit_phase(one, one.begin_s)
        waited_s = one.begin_s - request.ready_s
        one.waiting_time_sum_s += waited_s
        observe(state.histograms.waiting_time, slot, state.request_bounds, waited_s, 1)


@compiled
def take_chunk(state: State, one: Record, index: int, budget: int) -> tuple[int, float]:
    """Compute as much of a prompt as the budget allows: its tokens and attention pairs."""
    request = state.requests[index]
    computed = request.computed_tokens
    chunk = min(request.prefill_tokens - computed, budget)
    request.computed_tokens = computed + chunk
    if computed + chunk >= request.prefill_tokens:
        complete_later(state, one, index)
    else:
        one.partial = index
    return chunk, chunk * (computed + (chunk - 1) / 2)


@compiled
def plan_run(state: State, slot: int, preempted: bool) -> None:  # noqa: FBT001
    """Begin as many decode steps as certainly nobody joins, leaves or lacks a block in."""
    one = state.replicas[slot]
    prepare_run(state, one)
    steps = state.finish_keys[slot, 0] - one.counter
    if one.crossing > 0:
        steps = min(steps, state.cross_keys[slot, 0] - one.counter)
    if preempted:
        steps = 1
    one.steps = steps_until_full(state, slot, steps)
    one.activity = LEAPING
    cut_run(state, slot)


@compiled
def cut_run(state: State, slot: int) -> None:
    """End the run where the first in the queue can join."""
    one = state.replicas[slot]
    if one.steps > 1 and has_place(state, one):
        one.steps = steps_reaching(one, state.requests[one.queue_head].ready_s)
    set_event(state, slot, one.begin_s + run_time_s(one, one.steps))
