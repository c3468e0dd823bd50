"""The router: which replica takes a request."""

import numpy as np

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.phases import arrive_phase
from sim_cluster.serving.compiled.plan import cut_run, plan
from sim_cluster.serving.compiled.queue import join_back
from sim_cluster.serving.compiled.state import IDLE, LEAPING, NOBODY, Ints, Record, State

ROUND_ROBIN, LEAST_LOADED, POWER_OF_TWO = 0, 1, 2
"""Routing policies."""

MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)
"""Of xorshift64*."""


@compiled
def draw(router: Record, below: int) -> int:
    """Draw a whole number, uniform up to a bias of 2^-32 (xorshift64*, Vigna 2016)."""
    x = router.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    router.random = x
    high = (x * MULTIPLIER) >> np.uint64(32)
    return int(np.int64((high * np.uint64(below)) >> np.uint64(32)))


@compiled
def choose(state: State) -> int:
    """Return the slot that takes the next request; there must be a routable one."""
    router = state.router[0]
    count = router.routable
    if count == 1:
        return state.routable[0]
    if router.policy == POWER_OF_TWO:
        first = draw(router, count)
        second = draw(router, count - 1)
        if second >= first:
            second += 1
        one, other = state.routable[first], state.routable[second]
        return one if state.loads[one] <= state.loads[other] else other
    router.turn = (router.turn + 1) % count
    if router.policy == ROUND_ROBIN:
        return state.routable[router.turn]
    return least_loaded(state.routable, state.loads, count, router.turn)


@compiled
def least_loaded(routable: Ints, loads: Ints, count: int, turn: int) -> int:
    """Return the slot with the fewest requests in flight; ties go round in turn."""
    best = routable[turn]
    for place in range(turn + 1, count):
        if loads[routable[place]] < loads[best]:
            best = routable[place]
    for place in range(turn):
        if loads[routable[place]] < loads[best]:
            best = routable[place]
    return best


@compiled
def route(state: State, index: int, now_s: float) -> None:
    """Send a request to a replica, or hold it at the router while there is none."""
    router = state.router[0]
    if router.routable == 0:
        hold(state, index)
        return
    slot = choose(state)
    one, request = state.replicas[slot], state.requests[index]
    request.ready_s = now_s + state.machine.request_s
    request.replica = one.life
    one.arrivals += 1
    one.in_flight += 1
    state.loads[slot] += 1
    arrive_phase(one, now_s)
    was_empty = one.queued == 0
    join_back(state, one, index)
    if one.activity == IDLE:
        plan(state, slot, now_s)
    elif one.activity == LEAPING and was_empty:
        cut_run(state, slot)


@compiled
def hold(state: State, index: int) -> None:
    """Keep a request at the router."""
    router = state.router[0]
    state.requests[index].next = NOBODY
    if router.held == 0:
        router.held_head = index
    else:
        state.requests[router.held_tail].next = index
    router.held_tail = index
    router.held += 1


@compiled
def release_held(state: State) -> None:
    """Route every request that is held at the router."""
    router = state.router[0]
    index, held = router.held_head, router.held
    router.held = 0
    for _ in range(held):
        following = state.requests[index].next
        route(state, index, router.now_s)
        index = following
