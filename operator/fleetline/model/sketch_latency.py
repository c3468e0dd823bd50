"""
By how much objectives are missed, in numbers rather than arrays: what a sketch of a ceiling needs.

The latencies of one kind of request as gamma distributions, whose tail is nearly that of a normal
one (Wilson and Hilferty, 1931):

    P(shift + X > target) = P(Z > 3 sqrt(k) ((x / m)^(1/3) - 1 + 1 / 9k))      k = m^2 / Var(X)
"""

from math import cbrt, erfc, exp, sqrt
from typing import Final, NamedTuple

from scipy import special

from fleetline.model.lives import UNEVEN
from fleetline.model.loop import ALMOST_ONE
from fleetline.model.objective import Metric
from fleetline.model.sketch_pace import Pace, Traits
from fleetline.model.slots import ROOT_TWO_PI
from fleetline.model.swing import BURST_S, TINY

FAR: Final = 40.0
"""Standard deviations by which a target below everything is missed."""
LEAST_SHAPE: Final = 1e-3
MOST_FULL: Final = 0.995
"""Utilization of the prefill server beyond which its queue is no longer."""
HIDDEN: Final = 0.5
"""How far prompts count that hide behind the reading of weights on average: some do not."""
ROOT_TWO: Final = sqrt(2.0)
MEAN_LIFE: Final = 0.5
"""How far a request of mean length outlasts others."""


class Wanted(NamedTuple):
    """One objective."""

    metric: Metric
    target_s: float
    allowed_share: float
    """Share of requests that may miss it."""
    normal_ratio: float
    """Standard deviations that a share as large exceeds."""


class Moments(NamedTuple):
    """Of what comes on top of a shift."""

    mean_s: float
    variance_s2: float


def _tail_ratio(normal_ratio: float, distance_s: float, excess: Moments) -> float:
    """Standard deviations by which a gamma distribution misses a target at a distance."""
    if distance_s <= 0.0:
        return FAR
    mean_s = max(excess.mean_s, TINY)
    root = sqrt(max(mean_s * mean_s / max(excess.variance_s2, TINY * TINY), LEAST_SHAPE))
    return normal_ratio - 3.0 * root * (cbrt(distance_s / mean_s) - 1.0) - 1.0 / (3.0 * root)


def token_ratio(one: Traits, pace: Pace, asked: Wanted) -> float:
    """TPOT, whose excess over a plain step is what prompts and the drift of the batch add."""
    idle = 1.0 - pace.busy_share
    steps = one.answer_tokens / one.tokens_per_step
    stay_s = steps * pace.mean_step_s
    lasting = stay_s / (stay_s + 0.5 * BURST_S) if one.bursts_ratio > 0 else 1.0
    renewed = (1.0 - one.coupling_factor) * (one.stay_ratio - 1.0) * MEAN_LIFE
    burst = max(1.0 + (renewed + lasting * one.bursts_ratio) / one.uneven_ratio, 0.1)
    outlasting = 1.0 + UNEVEN * MEAN_LIFE * one.coupling_factor
    varied_s = pace.mean_step_s / (idle * idle) * one.short_ratio
    gathered = pace.rate_per_s * pace.square_s2 * varied_s * burst * outlasting
    drift = pace.level_s2 / (1.0 + 0.5 * (1.0 - pace.pull_ratio))
    excess = Moments(pace.token_s - pace.step_s, gathered + drift)
    return _tail_ratio(
        asked.normal_ratio, asked.target_s * one.tokens_per_step - pace.step_s, excess
    )


def gap_ratio(pace: Pace, asked: Wanted) -> float:
    """ITL: if steps with prompts are too rare to matter, the level of plain ones."""
    lengthened_s = 0.5 * pace.step_s * (1.0 + pace.token_s / pace.mean_step_s)
    distance_s = asked.target_s - lengthened_s
    rare = asked.allowed_share - pace.some_share
    if rare < 0.0:
        normal = float(special.ndtri(1.0 - asked.allowed_share / pace.some_share))
        mean_s = pace.seen_s * pace.brought_requests / pace.some_share
        square_s2 = pace.square_s2 * pace.brought_requests / pace.some_share
        spread = max(square_s2 - mean_s * mean_s * (1.0 - pace.some_share), 0.1 * mean_s * mean_s)
        return _tail_ratio(normal, distance_s, Moments(mean_s, spread + pace.level_s2))
    normal = float(special.ndtri(1.0 - rare / max(1.0 - pace.some_share, TINY)))
    return normal - distance_s / max(sqrt(pace.level_s2), TINY)


def first_ratio(one: Traits, pace: Pace, first: Moments, asked: Wanted) -> float:
    """TTFT, which no request has before its own step."""
    seen = 1.0 if one.work_s > pace.gap_s else HIDDEN
    prompts = one.work_s * one.work_s * (one.uneven_ratio - 1.0) * seen
    excess = Moments(first.mean_s - pace.step_s, first.variance_s2 + prompts)
    return _tail_ratio(asked.normal_ratio, asked.target_s - one.request_s - pace.step_s, excess)


def whole_ratio(one: Traits, pace: Pace, first: Moments, asked: Wanted) -> float:
    """End to end."""
    decode_s = one.answer_tokens / one.tokens_per_step * pace.token_s
    prompts = one.work_s * one.work_s * (one.uneven_ratio - 1.0)
    variance = first.variance_s2 + prompts + decode_s * decode_s * one.stay_ratio
    excess = Moments(first.mean_s + decode_s, variance)
    return _tail_ratio(asked.normal_ratio, asked.target_s - one.request_s, excess)


def first_token(one: Traits, pace: Pace) -> Moments:
    """Mean of slot wait, prefill wait and own prefill; variance of the two waits."""
    pieces = max(pace.room_ratio, 1.0)
    own_s = pieces * pace.step_s + max(one.work_s - pieces * pace.gap_s, 0.0)
    inside = pace.decoding_requests + pace.rate_per_s * own_s
    wait, slot = _prefill_wait(one, pace, inside), _slot_wait(one, pace, inside)
    return Moments(
        own_s + wait.mean_s + slot.mean_s,
        wait.variance_s2 + slot.variance_s2,
    )


def _prefill_wait(one: Traits, pace: Pace, inside_requests: float) -> Moments:
    """As `first_token.prefill_wait`: all of a step share the next one, or queue for its budget."""
    coupling, rate, seen_s = one.coupling_factor, pace.rate_per_s, pace.seen_s
    average_s, square_s2, parts = pace.mean_step_s, pace.square_s2, pace.room_ratio
    crowd = max(one.bursts_ratio, 0.0)
    routed = min(max(inside_requests - 0.5, 0.0), 1.0)
    busy = max(coupling * (1.0 - exp(-inside_requests)), routed)
    varied = rate * square_s2 * max(1.0 + one.bursts_ratio, 0.0)
    relative = varied / (average_s * (1.0 - pace.busy_share * pace.busy_share))
    rest_s = 0.5 * busy * average_s * (1.0 + relative)
    third_s2 = average_s * average_s * (1.0 + relative * (3.0 + 2.0 * relative)) / 3.0
    companions = 2.0 * coupling * rate * rest_s
    companions += pace.some_share * (1.0 - coupling) * pace.brought_requests
    together_s = rest_s + companions * seen_s
    together_s2 = busy * third_s2 - rest_s * rest_s + companions * square_s2
    service_s = parts * pace.step_s + max(one.work_s - parts * pace.gap_s, 0.0)
    outside = rate * (coupling + (1.0 - coupling) * min(average_s * parts / service_s, 1.0))
    pressure = 0.5 * outside / (1.0 - min(outside * service_s, MOST_FULL))
    queue_s = pressure * service_s * service_s * (one.uneven_ratio + crowd)
    explained_s = 0.5 * outside * (square_s2 + crowd * seen_s * seen_s)
    explained_s /= 1.0 - min(outside / rate * pace.held_share, MOST_FULL)
    cube_s3 = service_s * service_s * service_s * one.cubic_ratio
    queue_s2 = queue_s * queue_s + pressure * cube_s3 / 1.5 * (1.0 + crowd / one.uneven_ratio)
    other_s2 = max((1.0 - explained_s / together_s) * together_s2, 0.0)
    return Moments(
        together_s + max(queue_s - explained_s, 0.0),
        queue_s2 + other_s2 + sqrt(queue_s2 * other_s2),
    )


def _slot_wait(one: Traits, pace: Pace, inside_requests: float) -> Moments:
    """As `slots.slot_wait`: those who wait, with their share."""
    deviation = sqrt(pace.spread_requests + 0.25)
    spare = max(1.0 - pace.rate_per_s / one.capacity_per_s, 1.0 - ALMOST_ONE)
    burst = 0.5 * (1.0 + max(1.0 + one.bursts_ratio, 0.0))
    distance = (one.most_requests - inside_requests) / deviation
    share = 1.0
    if distance > 0.0:
        density = exp(-0.5 * min(distance * distance, 1400.0)) / ROOT_TWO_PI
        tail = density / deviation * burst / spare
        share = tail / (tail + 0.5 * erfc(-distance / ROOT_TWO))
    wait_s = one.coupling_factor * burst / (one.capacity_per_s * spare)
    return Moments(share * wait_s, share * (2.0 - share) * wait_s * wait_s)
