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
    steps, average = lanes.lives.steps, loop.mean_step_s
    single = loop.chunked.single_share
    rate, square = loop.arrival_rate_per_s * loop.others_share, loop.seen_square_s2
    busy = lanes.coupling * np.minimum(loop.held, MOST_BUSY)
    idle, settled = 1.0 - busy, 1.0 - busy * busy
    seen = single * np.minimum(loop.seen_s / lanes.work_s, 1.0)
    companions_s = single * busy * rate * square / settled
    longer_s = lanes.prefill_work_s * seen[..., np.newaxis] + companions_s[..., np.newaxis]
    # What a step that is longer by one adds to a life: the sum of busy^j over its steps.
    left = np.exp(steps * np.log(np.maximum(busy, TINY))[..., np.newaxis])
    decay = (1.0 - left) / idle[..., np.newaxis]
    shape = longer_s * decay
    total_s = loop.convoy_share * np.maximum(lanes.decode_steps, 1.0) * average
    convoy = (total_s / np.maximum(mean(lanes, shape), TINY))[..., np.newaxis] * shape / steps
    # What innovations add to a life, those of its own steps and, by the square of the decay, those
    # before it: single steps, less what the life cuts off.
    each_s, before_s = average / (idle * idle), busy * busy * average / settled
    cut_s = 2.0 * busy / (1.0 + busy) * each_s
    beside_s = longer_s - (before_s * (1.0 - single))[..., np.newaxis]
    varied_s = each_s[..., np.newaxis] * steps + decay * (decay * beside_s - cut_s[..., np.newaxis])
    variance, burst = varied_s * (rate * square)[..., np.newaxis], 1.0 + lanes.lives.refill
    if not lanes.is_poisson:
        stay_s = steps * average[..., np.newaxis]
        more = later_companions(lanes, stay_s) / stay_s * square[..., np.newaxis]
        inside_s = varied_s - (before_s * single)[..., np.newaxis] * (decay * decay)
        variance = variance + inside_s * more
        burst = burst + _lasting_bursts(lanes, stay_s)
    return convoy, variance * (np.maximum(burst, 0.0) * lanes.lives.outlasting)


def _lasting_bursts(lanes: Lanes, stay_s: Array) -> Array:
    """What bursts add to the dispersion of arrivals in a stay, by kind."""
    bursts = lanes.bursts[..., np.newaxis]
    lasting = np.where(bursts > 0, stay_s / (stay_s + 0.5 * BURST_S), 1.0)
    return bursts * lasting / lanes.work_uneven[..., np.newaxis]
