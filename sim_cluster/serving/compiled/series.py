"""
Runs of decode steps in closed form.

    t_j = max(read, compute) + fixed,  each linear in j

so t_j follows one line before the bend and another from it on, and the time of k steps is

    sum_{j<k} (a + b j) = a k + b k (k - 1) / 2.
"""

import math

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import Record, State

NEVER = 1 << 62


@compiled
def prepare_run(state: State, one: Record) -> None:
    """Set the two lines of the step time of the batch as it is now."""
    machine = state.machine
    sequences, growth = one.decoding, one.decoding * machine.tokens_per_step
    read_s = (
        machine.kv_read_s_per_token * one.context_tokens
        + machine.window_read_s_per_token * one.window_context_tokens
    )
    inside = one.growing * machine.tokens_per_step
    read_slope_s = machine.kv_read_s_per_token * growth + machine.window_read_s_per_token * inside
    compute_s = machine.context_compute_s_per_token * one.context_tokens
    compute_slope_s = machine.context_compute_s_per_token * growth
    rest_s = machine.fixed_s + machine.sequence_s * sequences + linear_s(state, sequences, 0)
    if read_s >= compute_s:
        set_lines(one, read_s, read_slope_s, compute_s, compute_slope_s)
    else:
        set_lines(one, compute_s, compute_slope_s, read_s, read_slope_s)
    one.first_s += rest_s
    one.second_s += rest_s


@compiled
def linear_s(state: State, sequences: int, prefill_tokens: int) -> float:
    """Linear layers of a step: weights are read once, and multiply every token. [s]"""
    machine = state.machine
    read_s = machine.weights_read_s + machine.experts_read_s * state.touched_share[sequences]
    return max(
        read_s, machine.token_compute_s * sequences + machine.prefill_token_s * prefill_tokens
    )


@compiled
def set_lines(
    one: Record, high_s: float, high_slope_s: float, low_s: float, low_slope_s: float
) -> None:
    """Store the line that leads now, the other, and the step from which the other leads."""
    one.first_s, one.first_slope_s = high_s, high_slope_s
    one.second_s, one.second_slope_s = low_s, low_slope_s
    one.bend = NEVER
    if low_slope_s > high_slope_s:
        ahead = (high_s - low_s) / (low_slope_s - high_slope_s)
        if ahead < 1e15:
            one.bend = math.floor(ahead) + 1


@compiled
def step_at_s(one: Record, step: int) -> float:
    """Time of one step of the run. [s]"""
    if step < one.bend:
        return one.first_s + one.first_slope_s * step
    return one.second_s + one.second_slope_s * step


@compiled
def run_time_s(one: Record, steps: int) -> float:
    """Time of the first so many steps of the run. [s]"""
    k = float(steps)
    if steps <= one.bend:
        return one.first_s * k + one.first_slope_s * (k * (k - 1.0) * 0.5)
    bend = float(one.bend)
    before_s = one.first_s * bend + one.first_slope_s * (bend * (bend - 1.0) * 0.5)
    pairs = k * (k - 1.0) * 0.5 - bend * (bend - 1.0) * 0.5
    return before_s + one.second_s * (k - bend) + one.second_slope_s * pairs


@compiled
def steps_by(one: Record, now_s: float) -> int:
    """How many steps of the run have ended by then; at most all of them."""
    left_s = now_s - one.begin_s
    if left_s <= 0.0:
        return 0
    first_s, slope_s, skipped = one.first_s, one.first_slope_s, 0
    if one.bend < one.steps:
        before_s = run_time_s(one, one.bend)
        if left_s > before_s:
            left_s -= before_s
            first_s = one.second_s + one.second_slope_s * one.bend
            slope_s, skipped = one.second_slope_s, one.bend
    half_s = first_s - 0.5 * slope_s
    root = half_s + math.sqrt(half_s * half_s + 2.0 * slope_s * left_s)
    guess = 2.0 * left_s / root
    steps = one.steps if guess >= one.steps else min(one.steps, skipped + int(guess))
    while steps < one.steps and one.begin_s + run_time_s(one, steps + 1) <= now_s:
        steps += 1
    while steps > 0 and one.begin_s + run_time_s(one, steps) > now_s:
        steps -= 1
    return steps


@compiled
def steps_reaching(one: Record, now_s: float) -> int:
    """After how many steps of the run, at least one, that moment has come."""
    steps = steps_by(one, now_s)
    if one.begin_s + run_time_s(one, steps) < now_s:
        steps += 1
    return min(max(steps, 1), one.steps)
