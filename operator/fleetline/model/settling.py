"""Where the loop settles: the state at a given arrival rate, or with a given number in flight."""

import numpy as np

from fleetline.model.first_token import prefill_wait
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import Loop, closed_loop, open_loop
from fleetline.model.slots import saturated
from fleetline.model.swing import TINY

POINTS = 10
ROUNDS = 3
"""Each round narrows the bracket 9 times, to a few per cent of N, where the logarithms of rate and
number lie on a straight line."""
BEYOND = 2.0
"""How far beyond the limit of the batch a state is looked for."""
HALVINGS = 40


def settle(lanes: Lanes, arrival_rate_per_s: Array) -> Loop:
    """
    Solve lambda(N) = rate for every question; rates in shape (questions, 1), per lane.

    A rate that no number in the batch reaches gives the state at the largest number looked at.
    """
    low = np.full_like(arrival_rate_per_s, TINY)
    high = BEYOND * np.maximum(lanes.batch_limit, 1.0)
    share = np.linspace(0.0, 1.0, POINTS)
    rows = np.arange(low.shape[0])
    low = np.minimum(0.2 * arrival_rate_per_s * lanes.decode_steps * lanes.step["fixed_s"], high)
    low = np.maximum(low, TINY)
    wanted = np.log(np.maximum(arrival_rate_per_s, TINY))
    for _ in range(ROUNDS):
        grid = low * (high / low) ** share
        rates = np.log(open_loop(lanes, grid).arrival_rate_per_s)
        last = np.minimum(np.maximum((rates < wanted).sum(axis=1) - 1, 0), POINTS - 2)
        low, high = grid[rows, last][:, np.newaxis], grid[rows, last + 1][:, np.newaxis]
    before, beyond = rates[rows, last][:, np.newaxis], rates[rows, last + 1][:, np.newaxis]
    part = (wanted - before) / np.maximum(beyond - before, TINY)
    return open_loop(lanes, low * (high / low) ** np.minimum(np.maximum(part, 0.0), 1.0))


def closed(lanes: Lanes, in_flight: Array) -> tuple[Loop, Array]:
    """
    State with a fixed number in flight per lane, and the mean TTFT that follows.

    The batch takes what its limit allows, the rest waits: N + lambda TTFT = in flight.
    """
    most = np.minimum(saturated(lanes).decoding, in_flight)
    low, high = np.zeros_like(most), most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        loop = closed_loop(lanes, np.maximum(middle, TINY))
        wait = prefill_wait(lanes, loop).mean_s * np.maximum(1.0 - 1.0 / in_flight, 0.0)
        first = loop.own_prefill_s + wait + lanes.step["request_s"]
        over = middle + loop.arrival_rate_per_s * first > in_flight
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    loop = closed_loop(lanes, np.maximum(high, TINY))
    first = (in_flight - loop.decoding) / loop.arrival_rate_per_s
    return loop, np.maximum(first, 0.0)
