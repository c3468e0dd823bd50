"""
Blocks of KV cache of sequences that grow in step.

A sequence takes a block once in every cycle of `units_per_block` decode steps. How many take
one at a given step depends only on where in the cycle that step is: `phases` counts them.
"""

import math

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import Record, State


@compiled
def units_of(state: State, tokens: float) -> int:
    """Decode steps' worth of tokens. [steps]"""
    return math.ceil(tokens / state.machine.tokens_per_step)


@compiled
def blocks_of(state: State, units: int) -> int:
    """Blocks that hold so many steps' worth of tokens."""
    cycle = state.machine.units_per_block
    return (units + cycle - 1) // cycle


@compiled
def blocks_held(state: State, one: Record, request: Record) -> int:
    """Blocks of a decoding sequence, before it takes one for the coming step."""
    units = units_of(state, request.prefill_tokens)
    return blocks_of(state, units + one.counter - request.joined)


@compiled
def phase_of(state: State, request: Record) -> int:
    """At which step of the cycle a decoding sequence takes a block."""
    units = units_of(state, request.prefill_tokens)
    return (request.joined - units) % state.machine.units_per_block


@compiled
def blocks_needed(state: State, slot: int, steps: int) -> int:
    """Blocks that the decoding sequences take in the coming so many steps."""
    one = state.replicas[slot]
    cycle = state.machine.units_per_block
    needed = (steps // cycle) * one.decoding
    for step in range(steps % cycle):
        needed += state.phases[slot, (one.counter + step) % cycle]
    return needed


@compiled
def steps_until_full(state: State, slot: int, limit: int) -> int:
    """How many steps, at most `limit`, the free blocks are enough for."""
    one = state.replicas[slot]
    cycle = state.machine.units_per_block
    cycles = one.free_blocks // one.decoding
    if cycles > limit // cycle:
        return limit
    steps, left = cycles * cycle, one.free_blocks - cycles * one.decoding
    while steps < limit:
        left -= state.phases[slot, (one.counter + steps) % cycle]
        if left < 0:
            break
        steps += 1
    return min(steps, limit)
