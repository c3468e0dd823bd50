"""When each slot next has something to do, and which is first: a tournament tree."""

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import State


@compiled
def set_event(state: State, slot: int, at_s: float) -> None:
    """Move the next event of a slot."""
    state.next_event_s[slot] = at_s
    times, winners = state.next_event_s, state.winners
    node = (winners.size // 2 + slot) >> 1
    while node > 0:
        left, right = winners[2 * node], winners[2 * node + 1]
        winners[node] = left if times[left] <= times[right] else right
        node >>= 1


@compiled
def earliest(state: State) -> int:
    """Return the slot whose event comes first."""
    return state.winners[1]
