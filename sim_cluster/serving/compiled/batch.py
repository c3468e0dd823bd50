"""
Joining and leaving the sequences that decode.

Kept per replica: the sum of contexts, the same with each context capped at the sliding window,
how many contexts are still inside the window, and when the next one leaves it. A model without
a window counts as one whose window is never reached.
"""

import math

from sim_cluster.serving.compiled import heap
from sim_cluster.serving.compiled.blocks import blocks_held, phase_of
from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.queue import join_front
from sim_cluster.serving.compiled.state import NOBODY, Record, State

ROUNDING = 1e-9
"""A sum of fractional tokens this close to a whole one has reached it."""


@compiled
def steps_for(state: State, tokens: float) -> int:
    """Decode steps that yield so many tokens."""
    return math.ceil(tokens / state.machine.tokens_per_step - ROUNDING)


@compiled
def context_of(state: State, one: Record, request: Record) -> float:
    """KV cache that the next step of a decoding sequence reads. [tokens]"""
    steps = one.counter - request.joined
    return request.prefill_tokens + 1.0 + state.machine.tokens_per_step * steps


@compiled
def windowed(state: State, context_tokens: float) -> float:
    """Cap a context to the part that sliding-window layers read. [tokens]"""
    window = state.machine.window_tokens
    return min(context_tokens, float(window)) if window > 0 else context_tokens


@compiled
def join(state: State, slot: int, index: int, left_tokens: float) -> None:
    """Let a sequence decode from the next step on, until so many tokens are there."""
    one, request = state.replicas[slot], state.requests[index]
    request.joined = one.counter
    request.finish = one.counter + steps_for(state, left_tokens)
    heap.push(state.finish_keys, state.finish_ids, slot, one.decoding, request.finish, index)
    one.decoding += 1
    context = context_of(state, one, request)
    one.context_tokens += context
    one.window_context_tokens += windowed(state, context)
    state.phases[slot, phase_of(state, request)] += 1
    window = state.machine.window_tokens
    if window == 0:
        one.growing += 1
    elif context < window:
        one.growing += 1
        crossing = one.counter + steps_for(state, window - context)
        if crossing <= request.finish:
            heap.push(state.cross_keys, state.cross_ids, slot, one.crossing, crossing, index)
            one.crossing += 1


@compiled
def leave(state: State, slot: int, index: int, place: int) -> None:
    """Take a sequence at a place of the heap out of the batch and free its blocks."""
    one, request = state.replicas[slot], state.requests[index]
    context = context_of(state, one, request)
    heap.remove(state.finish_keys, state.finish_ids, slot, one.decoding, place)
    one.decoding -= 1
    one.running -= 1
    one.free_blocks += blocks_held(state, one, request)
    state.phases[slot, phase_of(state, request)] -= 1
    one.context_tokens -= context
    one.window_context_tokens -= windowed(state, context)
    window = state.machine.window_tokens
    if window == 0 or context < window:
        one.growing -= 1


@compiled
def cross_windows(state: State, slot: int) -> None:
    """Stop the growth of contexts that have just filled the sliding window."""
    one = state.replicas[slot]
    while one.crossing > 0 and state.cross_keys[slot, 0] <= one.counter:
        request = state.requests[state.cross_ids[slot, 0]]
        heap.remove(state.cross_keys, state.cross_ids, slot, one.crossing, 0)
        one.crossing -= 1
        one.growing -= 1
        one.window_context_tokens -= context_of(state, one, request) - state.machine.window_tokens


@compiled
def preempt_last(state: State, slot: int, now_s: float) -> None:
    """Preempt the request that was admitted last: back to the head of the queue, cache lost."""
    one = state.replicas[slot]
    if one.partial != NOBODY:
        index = one.partial
        one.partial = NOBODY
        one.running -= 1
        request = state.requests[index]
        one.free_blocks += prompt_blocks(state, request)
    else:
        index = forget_last(state, slot, now_s)
    request = state.requests[index]
    request.preemptions += 1
    request.computed_tokens = 0
    request.prefill_tokens = request.prompt_tokens + int(request.earlier_tokens)
    one.preemptions += 1
    join_front(state, one, index)


@compiled
def prompt_blocks(state: State, request: Record) -> int:
    """Blocks that admission takes for a request."""
    cycle = state.machine.units_per_block
    units = math.ceil(request.prefill_tokens / state.machine.tokens_per_step)
    return (units + cycle - 1) // cycle


@compiled
def forget_last(state: State, slot: int, now_s: float) -> int:
    """Take the decoding sequence that was admitted last out of the batch."""
    one = state.replicas[slot]
    place, order = 0, -1
    for candidate in range(one.decoding):
        admitted = state.requests[state.finish_ids[slot, candidate]].order
        if admitted > order:
            place, order = candidate, admitted
    index = state.finish_ids[slot, place]
    request = state.requests[index]
    crossing = heap.find(state.cross_ids, slot, one.crossing, index)
    if crossing >= 0:
        heap.remove(state.cross_keys, state.cross_ids, slot, one.crossing, crossing)
        one.crossing -= 1
    steps = one.counter - request.joined
    tokens = request.earlier_tokens + 1.0 + state.machine.tokens_per_step * steps
    leave(state, slot, index, place)
    request.earlier_tokens = math.floor(tokens + ROUNDING)
    one.generation_tokens -= tokens - request.earlier_tokens
    request.last_token_s = now_s
    return index
