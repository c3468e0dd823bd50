"""
Time to first token, link by link.

    TTFT = request + slot wait + residual step + prefill wait + own prefill

Two regimes of the prefill server. Short prompts: all that arrive during one step share the next,
so a request waits for the rest of a step and then for the work of its companions as well. Long
prompts: they queue for the token budget of the steps, M/G/1 with service S = own work and the
decode steps it is spread over. The share of the budget that is filled tells which one holds.
"""

from dataclasses import dataclass

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import ALMOST_ONE, MOST_BUSY, Loop
from fleetline.model.mixed_step import chunks, mean
from fleetline.model.swing import BURST_S, TINY


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Mean and variance of one link, shape (questions, points). [s], [s^2]"""

    mean_s: Array
    variance_s2: Array


def own_prefill_s(lanes: Lanes, loop: Loop) -> Array:
    """Steps that hold the own prompt, as if it were the only one; by kind. [s]"""
    parts = chunks(lanes, loop.decoding)
    hidden = parts * loop.gap_s[..., np.newaxis]
    work = np.maximum(lanes.prefill_work_s - hidden, 0.0)
    return work + parts * loop.step_s[..., np.newaxis]


def service_s(lanes: Lanes, loop: Loop) -> Array:
    """Time for which a prompt occupies the prefill server, sharing its last step. [s]"""
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)[..., np.newaxis]
    share = lanes.kinds.prompt_tokens / budget
    work = np.maximum(lanes.prefill_work_s - share * loop.gap_s[..., np.newaxis], 0.0)
    return work + share * loop.step_s[..., np.newaxis]


def busy_share(lanes: Lanes, loop: Loop) -> Array:
    """Probability that an arrival finds a step under way."""
    inside = loop.decoding + loop.arrival_rate_per_s * loop.own_prefill_s
    regular = np.minimum(
        np.maximum(1.0 + lanes.bursts * lanes.shared_stay / lanes.coupling, 0.0), 1.0
    )
    idle = regular * np.exp(-inside) + (1.0 - regular) * np.maximum(1.0 - inside, 0.0)
    # A router that sees an idle replica takes it.
    routed = np.minimum(np.maximum(inside - 0.5, 0.0), 1.0)
    return lanes.coupling * (1.0 - idle) + (1.0 - lanes.coupling) * routed


def gathered(lanes: Lanes, loop: Loop, sources: Array) -> tuple[Wait, Array]:
    """
    Wait if every step took all prompts there are: the rest of a step, and companions' work.

    Also the part of it that M/G/1 explains, so that the surplus is what gathering costs.
    """
    average = loop.mean_step_s
    busy_step = lanes.coupling * np.minimum(loop.extra_s / average, ALMOST_ONE)
    seen = loop.extra_s / np.maximum(loop.arrival_rate_per_s * average * lanes.work_s, TINY)
    rate = loop.arrival_rate_per_s
    square = loop.seen_square_s2
    variance = rate * average * square * lanes.dispersion / (1.0 - busy_step**2)
    busy = busy_share(lanes, loop)
    second = average * average + variance
    third = average**3 + 3.0 * average * variance + 2.0 * variance * variance / average
    rest = busy * second / (2.0 * average)
    paced = loop.mixed_share * (1.0 - lanes.coupling)
    count = lanes.coupling * 2.0 * rate * rest + paced * rate * average
    others = count * lanes.work_s * seen
    wait = Wait(
        mean_s=rest + others,
        variance_s2=busy * third / (3.0 * average) - rest * rest + count * square,
    )
    burst = np.maximum(square + (lanes.dispersion - 1.0) * (lanes.work_s * seen) ** 2, 0.0)
    busy_share_of_step = np.minimum(loop.extra_s / average, ALMOST_ONE)
    return wait, sources * rate * burst / (2.0 * (1.0 - sources * busy_share_of_step))


def queue_for_budget(lanes: Lanes, loop: Loop, sources: Array, service: Array) -> Wait:
    """Wait of M/G/1 with service S, Pollaczek and Khinchine; second moment from E[S^3]."""
    first, square = mean(lanes, service), mean(lanes, service * service)
    cube = mean(lanes, service**3)
    rate = loop.arrival_rate_per_s
    spare = np.maximum(1.0 - sources * rate * first, 1.0 - ALMOST_ONE)
    burst = np.maximum(square + lanes.bursts * first * first, 0.0)
    usual = sources * rate * burst / (2.0 * spare)
    crowd = _crowd(lanes, sources * rate, first, square) / np.maximum(usual, TINY)
    burst = burst * np.where(lanes.bursts > 0, np.maximum(crowd, 1.0), 1.0)
    average = sources * rate * burst / (2.0 * spare)
    tail = sources * rate * cube / (3.0 * spare) * burst / square
    return Wait(mean_s=average, variance_s2=average * average + tail)


def _from_outside(lanes: Lanes, loop: Loop, service: Array) -> Array:
    """
    Share of the load of the prefill server that comes whatever it does.

    Many replicas behind one router get a request when one has left, so in steps, not in time: fewer
    come while a step is long, and one of all places is waiting itself.
    """
    budget = np.maximum(lanes.step_token_budget - loop.decoding, 1.0)
    by_step = loop.mean_step_s * lanes.prompt_tokens / budget
    by_time = mean(lanes, service)
    paced = np.minimum(by_step / np.maximum(by_time, TINY), 1.0)
    share = lanes.coupling + (1.0 - lanes.coupling) * paced
    return share * (1.0 - (1.0 - lanes.coupling) / (1.0 + loop.decoding))


def _crowd(lanes: Lanes, rate: Array, first: Array, square: Array) -> Array:
    """
    Mean wait inside a burst: the queue at the rate of a burst, or its companions as one batch.

    Bursts that are longer than a prompt are a higher rate, shorter ones all come at once.
    """
    bursts = np.maximum(lanes.bursts, 0.0)
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
    beyond = np.maximum(queue.mean_s - explained, 0.0)
    surplus = np.maximum(together.mean_s - explained, 0.0)
    share = surplus / np.maximum(together.mean_s, TINY)
    own, other = np.maximum(queue.variance_s2, 0.0), share * together.variance_s2
    return Wait(mean_s=together.mean_s + beyond, variance_s2=own + other + np.sqrt(own * other))
