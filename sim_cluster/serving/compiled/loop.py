"""The event loop: arrivals and the events of replicas, in order of time."""

import math

from sim_cluster.serving.compiled.boundary import reach_event
from sim_cluster.serving.compiled.jit import entry
from sim_cluster.serving.compiled.routing import release_held, route
from sim_cluster.serving.compiled.schedule import earliest
from sim_cluster.serving.compiled.state import NOBODY, State


@entry
def run_until(state: State, until_s: float) -> int:
    """
    Let everything happen up to and including a moment, beginning with requests that are held.

    Returns the slot of a draining replica that has just finished its last request, before
    anything later has happened, or -1 when the moment is reached. An arrival comes before
    the events of replicas at the same moment.
    """
    router, requests = state.router[0], state.requests
    if router.held > 0 and router.routable > 0:
        release_held(state)
    while True:
        arrival_s = math.inf
        if router.next_arrival < requests.size:
            arrival_s = requests[router.next_arrival].arrival_s
        slot = earliest(state)
        event_s = state.next_event_s[slot]
        now_s = min(arrival_s, event_s)
        if now_s > until_s or now_s == math.inf:
            if until_s < math.inf:
                router.now_s = until_s
            return NOBODY
        router.now_s = now_s
        router.events += 1
        if arrival_s <= event_s:
            index = router.next_arrival
            router.next_arrival += 1
            if requests[index].prompt_tokens > 0:
                route(state, index, now_s)
            else:
                router.rejected += 1
        else:
            reach_event(state, slot, now_s)
            if state.replicas[slot].draining and state.replicas[slot].in_flight == 0:
                return slot
