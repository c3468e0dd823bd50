"""
How far the number in the batch swings around its mean, and what that does to a step.

    Var(N) = N z / (1 - N t'/t)        z = variance over mean if speed did not depend on N

The time of a step bends: the experts touched level off, arithmetic takes over from reading. So it
is looked at in three places of the swing, with mean and variance of a normal distribution.
"""

from typing import Final

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes

BURST_S: Final = 1.0
"""How long a burst is taken to last, whatever the bins in which dispersion was measured. [s]"""
MOST_SWING: Final = 0.9
"""How far a level may lie from the mean, relatively: there are no negative numbers."""
LEAST_PULL: Final = 0.1
"""Least share of a fluctuation that the next life of a request takes back."""
MOST_RATIO: Final = 8.0
"""Variance over mean that no steady batch has."""
REACH: Final = 2.0**0.5
"""Standard deviations from the mean to the outer of three levels with weights 1/4, 1/2, 1/4."""
TINY: Final = 1e-12


def together_share(lanes: Lanes, stay_s: Array) -> Array:
    """
    Share of a burst that requests which stay for `stay_s` meet. 0..1

    Long stays meet those that came with them as long as both are there; stays shorter than a burst
    meet a part of it. Arrivals like clockwork are so at any length.
    """
    meeting_s = lanes.shared_stay * np.where(lanes.bursts > 0, BURST_S, 0.0)
    return lanes.shared_stay * stay_s / (stay_s + meeting_s)


def later_companions(lanes: Lanes, stay_s: Array) -> Array:
    """
    Requests of the same burst that come during a stay. [requests]

    Half of the others if the stay outlasts the burst.
    """
    return lanes.crowding[..., np.newaxis] * stay_s / (2 * stay_s + BURST_S)


def variance_ratio(lanes: Lanes, stay_s: Array, held: Array | None = None) -> Array:
    """
    Variance over mean of the number in the batch if its speed did not depend on it, z.

    Replicas behind one router share what arrives.

    Parameters
    ----------
    lanes
        The questions.
    stay_s
        Time in the batch. [s]
    held
        Requests that would have left while a prompt is computed: it brings one request and keeps
        others from leaving. [requests]
    """
    shared = 1.0 / lanes.replicas
    bursts = 0.0 if lanes.is_poisson else lanes.bursts * together_share(lanes, stay_s)
    if held is None:
        return np.maximum(shared + bursts, 0.0)
    square = 2.0 + held * (2.0 + held * lanes.work_uneven)  # 1 + E[(1 + k)^2]
    ratio = 0.5 * shared * square
    if not lanes.is_poisson:
        ratio = ratio + bursts * (1.0 + held) ** 2
    return np.minimum(np.maximum(ratio, 0.0), MOST_RATIO)


def spread_requests2(decoding: Array, ratio: Array, pull: Array) -> Array:
    """Variance of the number in the batch; `pull` is N t'/t. [requests^2]"""
    return decoding * ratio / np.maximum(1.0 - pull, LEAST_PULL)


def swing(
    lanes: Lanes, decoding: Array, mean_step_s: Array, slope_s: Array, spread: Array
) -> tuple[Array, Array]:
    """
    Distance of the outer levels from the mean: in requests, and relatively in prompts per step.

    More prompts come in a longer step, and while the burst lasts that has filled the batch.
    """
    far = REACH * np.minimum(np.sqrt(spread), MOST_SWING * decoding)
    more = slope_s * far / mean_step_s
    if not lanes.is_poisson:
        stay_s = lanes.decode_steps * mean_step_s
        lasting = REACH * BURST_S / (BURST_S + stay_s)
        bursts = lanes.crowding * together_share(lanes, stay_s)
        more = more + lasting * np.sqrt(bursts / np.maximum(decoding, TINY))
    return far, np.minimum(more, MOST_SWING)


def middle(levels: Array) -> Array:
    """Mean over three levels, first axis."""
    return np.asarray(0.25 * (levels[0] + levels[2]) + 0.5 * levels[1])


def skewness(levels: Array, average: Array) -> Array:
    """Skewness of three levels around their mean."""
    apart = levels - average
    apart2 = apart * apart
    square = np.maximum(middle(apart2), TINY * TINY)
    return np.asarray(middle(apart2 * apart) / (square * np.sqrt(square)))
