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
from fleetline.model.loop import MOST_BUSY, Loop
from fleetline.model.mixed_step import mean
from fleetline.model.swing import BURST_S, TINY, later_companions

UNEVEN = 0.7
"""What a life adds to the variance of long answers if arrivals come from outside: prompts that have
kept others in the batch lengthen its later steps too. From iteration-level simulation."""


def seen_share(lanes: Lanes, loop: Loop) -> Array:
    """Share of prefill work that lengthens steps: the rest hides behind the reading of weights."""
    offered = loop.arrival_rate_per_s * loop.mean_step_s * lanes.work_s
    return np.minimum(loop.extra_s / np.maximum(offered, TINY), 1.0)


def convoy_s(lanes: Lanes, loop: Loop, steps: Array) -> tuple[Array, Array]:
    """
    What prompts behind a request add to its mean step, and the variance of that mean, by kind.

    `steps` are the decode steps of each kind, shape (questions, 1, kinds). [s], [s^2]
    """
    busy = (lanes.coupling * np.minimum(loop.extra_s / loop.mean_step_s, MOST_BUSY))[
        ..., np.newaxis
    ]
    seen = seen_share(lanes, loop)[..., np.newaxis]
    work = lanes.prefill_work_s * seen
    square = loop.seen_square_s2[..., np.newaxis]
    rate = (loop.arrival_rate_per_s * loop.others_share)[..., np.newaxis]
    average = loop.mean_step_s[..., np.newaxis]
    left = busy**steps
    met = 1.0 - left
    decay = met / (1.0 - busy)
    companions = busy * average * (1.0 + rate * square / average / (1.0 - busy**2))
    single = (1.0 - loop.chunk_share**4)[..., np.newaxis]
    longer = single * (work + companions - busy * average)
    total = (loop.convoy_share * np.maximum(lanes.decode_steps, 1.0))[..., np.newaxis] * average
    shape = np.maximum(longer, 0.0) * busy * decay
    convoy = total * shape / np.maximum(mean(lanes, shape)[..., np.newaxis], TINY) / steps
    random = _sum_of_steps(busy, steps, left) * average + decay**2 * np.maximum(longer, 0.0)
    before = single * rate * square * average / (1.0 - busy**2) * (busy * decay) ** 2
    life = steps / (steps + lanes.decode_steps[..., np.newaxis])
    refill = ((1.0 - lanes.coupling) * (lanes.stay_square - 1.0))[..., np.newaxis] * life
    stay_s = steps * average
    lasting = np.where(lanes.bursts[..., np.newaxis] > 0, stay_s / (stay_s + 0.5 * BURST_S), 1.0)
    burst = lanes.bursts[..., np.newaxis] * lasting + refill
    burst = 1.0 + burst * (lanes.work_s**2 / lanes.work_square_s2)[..., np.newaxis]
    rate = rate + later_companions(lanes, stay_s) / stay_s
    variance = (rate * square * random + before) * np.maximum(burst, 0.0)
    variance = (1.0 + UNEVEN * lanes.coupling[..., np.newaxis] * life) * variance
    return convoy, variance / steps**2


def _sum_of_steps(busy: Array, steps: Array, left: Array) -> Array:
    """Variance of the sum of n steps over that of one innovation; `left` is busy^n."""
    once = busy * (1.0 - left) / (1.0 - busy)
    twice = busy**2 * (1.0 - left * left) / (1.0 - busy**2)
    return np.asarray((steps - 2.0 * once + twice) / (1.0 - busy) ** 2)
