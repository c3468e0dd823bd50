"""Linked lists of requests through their `next` field: the queue of a slot."""

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import NOBODY, Record, State


@compiled
def join_back(state: State, one: Record, index: int) -> None:
    """Put a request at the end of a replica's queue."""
    state.requests[index].next = NOBODY
    if one.queued == 0:
        one.queue_head = index
    else:
        state.requests[one.queue_tail].next = index
    one.queue_tail = index
    one.queued += 1


@compiled
def join_front(state: State, one: Record, index: int) -> None:
    """Put a preempted request at the head of a replica's queue."""
    state.requests[index].next = one.queue_head if one.queued > 0 else NOBODY
    if one.queued == 0:
        one.queue_tail = index
    one.queue_head = index
    one.queued += 1


@compiled
def leave_front(state: State, one: Record) -> int:
    """Take the first request out of a replica's queue."""
    index = one.queue_head
    one.queue_head = state.requests[index].next
    one.queued -= 1
    return index


@compiled
def complete_later(state: State, one: Record, index: int) -> None:
    """Note that a request's prompt is complete when the step ends."""
    state.requests[index].next = NOBODY
    if one.completing_head == NOBODY:
        one.completing_head = index
    else:
        state.requests[one.completing_tail].next = index
    one.completing_tail = index
