"""
The convoy: a long step lets arrivals gather, so the next step is long as well.

    x_j = t + rho x_{j-1} + e_j        Var(e_j) = lambda E[P^2] x_{j-1}

The steps of a request follow the step that held its own prompt, which was longer than the mean.
What exceeds the mean decays by rho = the share of prefill work in a step; short answers see most
of it. The sum of n such steps has mean and variance in closed form.
"""

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import Loop
from fleetline.model.mixed_step import mean
from fleetline.model.pace import MOST_BUSY
from fleetline.model.swing import BURST_S, TINY, later_companions


def convoy_s(lanes: Lanes, loop: Loop) -> tuple[Array, Array]:
    """
    What prompts behind a request add to its mean step, and the variance of that mean, by kind.

    [s], [s^2]
    """
    steps, rate = lanes.lives.steps, loop.arrival_rate_per_s * loop.others_share
    busy = lanes.coupling * np.minimum(loop.held, MOST_BUSY)
    idle, square = 1.0 - busy, loop.seen_square_s2
    settled = 1.0 - busy * busy
    companions_s = busy * rate * square / settled
    seen = loop.single_share * np.minimum(loop.seen_s / lanes.work_s, 1.0)
    left = busy[..., np.newaxis] ** steps
    decay = (1.0 - left) / idle[..., np.newaxis]
    longer_s = lanes.prefill_work_s * seen[..., np.newaxis]
    longer_s = longer_s + (loop.single_share * companions_s)[..., np.newaxis]
    after = busy[..., np.newaxis] * decay
    shape = longer_s * after
    total_s = loop.convoy_share * np.maximum(lanes.decode_steps, 1.0) * loop.mean_step_s
    convoy = (total_s / np.maximum(mean(lanes, shape), TINY))[..., np.newaxis] * shape / steps
    # Variance of the sum of n steps over that of one innovation.
    twice = (busy / (1.0 + busy))[..., np.newaxis] * (1.0 + left) - 2.0
    random = (steps + after * twice) * (loop.mean_step_s / (idle * idle))[..., np.newaxis]
    before_s = (loop.single_share * loop.mean_step_s / settled)[..., np.newaxis] * (after * after)
    variance, rates = random + decay * decay * longer_s, rate[..., np.newaxis]
    if lanes.is_poisson:
        variance, burst = (variance + before_s) * rates, 1.0 + lanes.lives.refill
    else:
        stay_s = steps * loop.mean_step_s[..., np.newaxis]
        together = rates + later_companions(lanes, stay_s) / stay_s
        variance = variance * together + before_s * rates
        burst = 1.0 + lanes.lives.refill + _lasting_bursts(lanes, stay_s)
    life = np.maximum(burst, 0.0) * lanes.lives.outlasting
    return convoy, variance * square[..., np.newaxis] * life


def _lasting_bursts(lanes: Lanes, stay_s: Array) -> Array:
    """What bursts add to the dispersion of arrivals in a stay, by kind."""
    bursts = lanes.bursts[..., np.newaxis]
    lasting = np.where(bursts > 0, stay_s / (stay_s + 0.5 * BURST_S), 1.0)
    return bursts * lasting / lanes.work_uneven[..., np.newaxis]
