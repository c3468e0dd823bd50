"""What happens when a step, or a run of steps, ends: tokens appear, requests finish."""

import math

from sim_cluster.serving.compiled.batch import cross_windows, join, leave, prompt_blocks
from sim_cluster.serving.compiled.blocks import blocks_needed
from sim_cluster.serving.compiled.histogram import observe, observe_run
from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.phases import finish_phase, first_token_phase
from sim_cluster.serving.compiled.plan import plan
from sim_cluster.serving.compiled.series import run_time_s
from sim_cluster.serving.compiled.state import LEAPING, MIXED, NOBODY, State


@compiled
def reach_event(state: State, slot: int, now_s: float) -> None:
    """Let the event of a slot happen and plan what comes next."""
    one = state.replicas[slot]
    if one.activity in (LEAPING, MIXED):
        end_run(state, slot)
        while one.decoding > 0 and state.finish_keys[slot, 0] <= one.counter:
            finish_first(state, slot, now_s)
        if one.activity == MIXED:
            complete_prompts(state, slot, now_s)
    plan(state, slot, now_s)


@compiled
def end_run(state: State, slot: int) -> None:
    """Account for the steps that have ended."""
    one, sequences = state.replicas[slot], state.replicas[slot].decoding
    took_s = run_time_s(one, one.steps)
    one.busy_s += took_s
    if sequences == 0:
        return
    if one.activity == LEAPING:
        one.free_blocks -= blocks_needed(state, slot, one.steps)
    growth = state.machine.tokens_per_step * one.steps
    one.counter += one.steps
    one.context_tokens += sequences * growth
    one.window_context_tokens += one.growing * growth
    one.generation_tokens += sequences * growth
    one.inter_token_latency_sum_s += sequences * took_s
    observe_run(
        state.histograms.inter_token_latency, slot, state.token_bounds, one, one.steps, sequences
    )
    cross_windows(state, slot)


@compiled
def finish_first(state: State, slot: int, now_s: float) -> None:
    """Finish the sequence at the top of the heap."""
    one = state.replicas[slot]
    index = state.finish_ids[slot, 0]
    request = state.requests[index]
    steps = request.finish - request.joined
    tokens = request.earlier_tokens + 1.0 + state.machine.tokens_per_step * steps
    one.generation_tokens -= tokens - request.output_tokens
    leave(state, slot, index, 0)
    finish(state, slot, index, now_s)


@compiled
def finish(state: State, slot: int, index: int, now_s: float) -> None:
    """Record the end of a request."""
    one, request = state.replicas[slot], state.requests[index]
    request.finished_s = now_s
    one.finished += 1
    one.in_flight -= 1
    state.loads[slot] -= 1
    finish_phase(one, now_s)
    residence_s = now_s - (request.ready_s - state.machine.request_s)
    one.residence_time_sum_s += residence_s
    observe(state.histograms.residence_time, slot, state.request_bounds, residence_s, 1)
    if request.output_tokens > 1:
        per_token_s = (now_s - request.first_token_s) / (request.output_tokens - 1)
        one.time_per_output_token_sum_s += per_token_s
        observe(state.histograms.time_per_output_token, slot, state.token_bounds, per_token_s, 1)


@compiled
def complete_prompts(state: State, slot: int, now_s: float) -> None:
    """Give a token to each request whose prompt the step has completed."""
    one = state.replicas[slot]
    index = one.completing_head
    one.completing_head = NOBODY
    while index != NOBODY:
        following = state.requests[index].next
        emit_after_prompt(state, slot, index, now_s)
        index = following


@compiled
def emit_after_prompt(state: State, slot: int, index: int, now_s: float) -> None:
    """Give one request the token that follows its prompt, the first one or the next."""
    one, request = state.replicas[slot], state.requests[index]
    one.generation_tokens += 1
    if math.isnan(request.first_token_s):
        request.first_token_s = now_s
        one.prompt_tokens += request.prompt_tokens
        first_token_phase(one, now_s)
        waited_s = now_s - (request.ready_s - state.machine.request_s)
        one.time_to_first_token_sum_s += waited_s
        observe(state.histograms.time_to_first_token, slot, state.first_token_bounds, waited_s, 1)
    else:
        gap_s = now_s - request.last_token_s
        one.inter_token_latency_sum_s += gap_s
        observe(state.histograms.inter_token_latency, slot, state.token_bounds, gap_s, 1)
    left = request.output_tokens - request.earlier_tokens - 1.0
    if left > 0.0:
        join(state, slot, index, left)
    else:
        one.running -= 1
        one.free_blocks += prompt_blocks(state, request)
        finish(state, slot, index, now_s)
