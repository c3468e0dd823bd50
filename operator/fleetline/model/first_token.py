"""
Time to first token, link by link.

    TTFT = request + slot wait + residual step + prefill wait + own prefill

Two regimes of the prefill server. Short prompts: all that arrive during one step share the next,
so a request waits for the rest of a step and then for the work of its companions as well. Long
prompts: they queue for the token budget of the steps, M/G/1 with service S = own work and the
decode steps it is spread over. The share of the budget that is filled tells which one holds.
"""

from typing import NamedTuple

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, Loop
from fleetline.model.mixed_step import mean
from fleetline.model.pace import MOST_BUSY, ClosedPace
from fleetline.model.swing import BURST_S, TINY


class Wait(NamedTuple):
    """Mean and variance of one link, shape (questions, points). [s], [s^2]"""

    mean_s: Array
    variance_s2: Array


def own_prefill_s(lanes: Lanes, loop: Loop) -> Array:
    """Steps that hold the own prompt, as if it were the only one; by kind. [s]"""
    return _occupied_s(lanes, loop, loop.chunked.parts)


def service_s(lanes: Lanes, loop: Loop | ClosedPace) -> Array:
    """Time for which a prompt occupies the prefill server, sharing its last step. [s]"""
    return _occupied_s(
        lanes, loop, lanes.kinds.prompt_tokens / loop.chunked.room_tokens[..., np.newaxis]
    )


def _occupied_s(lanes: Lanes, loop: Loop | ClosedPace, steps: Array) -> Array:
    """Time of a prompt that takes `steps`, each with a gap that hides some of its work. [s]"""
    work = np.maximum(lanes.prefill_work_s - steps * loop.gap_s[..., np.newaxis], 0.0)
    return work + steps * loop.step_s[..., np.newaxis]


def busy_share(lanes: Lanes, loop: Loop) -> Array:
    """Probability that an arrival finds a step under way."""
    inside = loop.inside
    idle = np.exp(-inside)
    if not lanes.is_poisson:
        regular = np.minimum(
            np.maximum(1.0 + lanes.bursts * lanes.shared_stay / lanes.coupling, 0.0), 1.0
        )
        idle = regular * idle + (1.0 - regular) * np.maximum(1.0 - inside, 0.0)
    # A router that sees an idle replica takes it.
    routed = np.minimum(np.maximum(inside - 0.5, 0.0), 1.0)
    return lanes.coupling * (1.0 - idle - routed) + routed


def gathered(lanes: Lanes, loop: Loop, sources: Array) -> tuple[Wait, Array]:
    """
    Wait if every step took all prompts there are: the rest of a step, and companions' work.

    Also the part of it that M/G/1 explains, so that the surplus is what gathering costs.
    """
    average, rate, square = loop.mean_step_s, loop.arrival_rate_per_s, loop.seen_square_s2
    held = np.minimum(loop.held, ALMOST_ONE)
    busy_step = lanes.coupling * held
    # Variance of a step over the square of its mean.
    relative = rate * square * lanes.dispersion / (average * (1.0 - busy_step * busy_step))
    met_s = busy_share(lanes, loop) * average
    rest = (0.5 * met_s) * (1.0 + relative)
    rest_square = met_s * average * (1.0 / 3.0 + relative * (1.0 + (2.0 / 3.0) * relative))
    paced = (1.0 - lanes.coupling) * loop.mixed_share * average
    count = rate * ((2.0 * lanes.coupling) * rest + paced)
    burst = square
    if not lanes.is_poisson:
        seen_s = loop.seen_s
        burst = np.maximum(square + lanes.bursts * (seen_s * seen_s), 0.0)
    wait = Wait(
        mean_s=rest + count * loop.seen_s,
        variance_s2=rest_square - rest * rest + count * square,
    )
    return wait, 0.5 * sources * rate * burst / (1.0 - sources * held)


def queue_for_budget(lanes: Lanes, loop: Loop, sources: Array, service: Array) -> Wait:
    """Wait of M/G/1 with service S, Pollaczek and Khinchine; second moment from E[S^3]."""
    service2 = service * service
    first, square = mean(lanes, service), mean(lanes, service2)
    cube = mean(lanes, service2 * service)
    rate = sources * loop.arrival_rate_per_s
    pressure = rate / np.maximum(1.0 - rate * first, 1.0 - ALMOST_ONE)
    burst = square
    if not lanes.is_poisson:
        burst = np.maximum(square + lanes.bursts * first * first, 0.0)
        crowd = _crowd(lanes, rate, first, square) / np.maximum(0.5 * pressure * burst, TINY)
        burst = burst * np.where(lanes.bursts > 0, np.maximum(crowd, 1.0), 1.0)
    average = 0.5 * pressure * burst
    tail = pressure * cube / 3.0
    if not lanes.is_poisson:
        tail = tail * (burst / square)
    return Wait(mean_s=average, variance_s2=average * average + tail)


def _from_outside(lanes: Lanes, loop: Loop, service: Array) -> Array:
    """
    Share of the load of the prefill server that comes whatever it does.

    Many replicas behind one router get a request when one has left, so in steps, not in time: fewer
    come while a step is long, and one of all places is waiting itself.
    """
    by_step = loop.mean_step_s * lanes.prompt_tokens / loop.chunked.room_tokens
    paced = np.minimum(by_step / mean(lanes, service), 1.0)
    pooled = 1.0 - lanes.coupling
    return (lanes.coupling + pooled * paced) * (1.0 - pooled / (1.0 + loop.decoding))


def _crowd(lanes: Lanes, rate: Array, first: Array, square: Array) -> Array:
    """
    Mean wait inside a burst: the queue at the rate of a burst, or its companions as one batch.

    Bursts that are longer than a prompt are a higher rate, shorter ones all come at once.
    """
    bursts = lanes.crowding
    inside = rate + bursts / BURST_S
    slow = inside * square / (2.0 * np.maximum(1.0 - inside * first, 1.0 - MOST_BUSY))
    spare = np.maximum(1.0 - rate * first, 1.0 - ALMOST_ONE)
    return np.asarray(np.minimum(slow, (rate * square + bursts * first) / (2.0 * spare)))


def prefill_wait(lanes: Lanes, loop: Loop) -> Wait:
    """
    All that passes between admission and the own prefill.

    Both parts grow with what has gathered, so their deviations are taken as half correlated.
    """
    service = service_s(lanes, loop)
    sources = _from_outside(lanes, loop, service)
    together, explained = gathered(lanes, loop, sources)
    queue = queue_for_budget(lanes, loop, sources, service)
    surplus = np.maximum(together.mean_s - explained, 0.0)
    share = surplus / np.maximum(together.mean_s, TINY)
    own, other = queue.variance_s2, share * together.variance_s2
    beyond = np.maximum(queue.mean_s - explained, 0.0)
    return Wait(mean_s=together.mean_s + beyond, variance_s2=own + other + np.sqrt(own * other))
