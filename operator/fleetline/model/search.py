"""
The search for the most that may be offered: two grids of concurrencies, and lines between them.

What is missed is nearly exponential in the number in the batch, so logarithms are nearly straight.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.model.bounds import Bounds
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import open_loop
from fleetline.model.slots import capacity_per_s
from fleetline.model.swing import TINY

FIRST_GRID: Final = np.array([0.0, 0.003, 0.015, 0.05, 0.13, 0.27, 0.45, 0.66, 0.84, 1.0])
"""Shares of the limit of the batch, dense where ceilings are; first one request alone."""
SECOND_GRID: Final = np.array([0.17, 0.34, 0.5, 0.66, 0.83])
"""Parts of the way between two points of the first grid."""
INSIDE: Final = (0.03, 0.97)
"""Where between them the first grid may expect the ceiling."""
LEAST_CONCURRENCY: Final = 1e-3
"""Requests in the batch at which a request is alone. [requests]"""
LEAST_GRID: Final = LEAST_CONCURRENCY * (1.0 + FIRST_GRID)
"""The least of the first grid, all different. [requests]"""
SEEN: Final = 6
"""What is looked at beside bounds: rate, step time, mean TTFT, loop gain, prefill utilization, and
logarithm of what is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the search leaves, one element a question."""

    capacity_per_s: Array
    possible: NDArray[np.bool_]
    missed: NDArray[np.intp]
    """Which bound is missed first beyond the ceiling."""
    at: Array
    """What is missed and seen at the ceiling, shape (bounds + SEEN, questions)."""


def search(lanes: Lanes, bounds: Bounds) -> Found:
    """
    Find the most that may be offered, and what is missed beyond.

    One grid over all concurrencies, a second one between the two points of the first where a bound
    begins to be missed, and a straight line between the logarithms of what is missed there. What
    holds at both points is not looked at again.
    """
    capacity = capacity_per_s(lanes)
    most = np.maximum(lanes.batch_limit, 2.0 * LEAST_CONCURRENCY)
    levels = np.log(np.maximum(most * FIRST_GRID, LEAST_GRID)).reshape(-1, FIRST_GRID.size)
    rows = np.arange(levels.shape[0])
    table = _look(lanes, bounds, capacity, levels)
    possible = np.logical_and.reduce(table[:-SEEN, :, 0] <= 0.0, axis=0)
    crossing = _crossing(table, rows)
    over = crossing.high[:-SEEN] > 0.0
    places = np.logical_or.reduce(over, axis=-1).nonzero()[0]
    which = crossing.which
    if places.size:
        kept = np.concatenate([places, np.arange(-SEEN, 0)])
        table = _look(lanes, bounds.only(places), capacity, _inside(crossing))
        low, high = crossing.low[kept, :, np.newaxis], crossing.high[kept, :, np.newaxis]
        crossing = _crossing(np.concatenate([low, table, high], axis=-1), rows)
        which = np.where(np.logical_or.reduce(over, axis=0), places[crossing.which], which)
    return Found(
        capacity_per_s=capacity.reshape(-1, 1),
        possible=possible,
        missed=which,
        at=crossing.low + crossing.part * (crossing.high - crossing.low),
    )


def _look(lanes: Lanes, bounds: Bounds, capacity: Array, levels: Array) -> Array:
    """
    Logarithm of what is missed over what may be, by bound, and what is `SEEN`.

    Shape (bounds + SEEN, questions, points), at logarithms of what is offered.
    """
    levels = levels[0] if lanes.is_alone else levels
    loop = open_loop(lanes, np.exp(levels))
    missed, first_s = bounds.missed(lanes, loop, capacity)
    seen = (loop.arrival_rate_per_s, loop.token_s, first_s, loop.loop_gain)
    table = np.array([*missed, *seen, loop.prefill_utilization, levels])
    return table[:, np.newaxis] if lanes.is_alone else table


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Two points between which a bound begins to be missed, or the last two."""

    low: Array
    """Shape (bounds + SEEN, questions)."""
    high: Array
    part: Array
    """Part of the way between them."""
    which: NDArray[np.intp]
    """The bound."""


def _crossing(table: Array, rows: NDArray[np.intp]) -> _Crossing:
    over = np.logical_or.reduce(table[:-SEEN] > 0.0, axis=0)
    over[:, -1] = True
    after = np.maximum(over.argmax(axis=-1), 1)
    low, high = table[:, rows, after - 1], table[:, rows, after]
    before, beyond = low[:-SEEN], high[:-SEEN]
    part = np.minimum(np.maximum(before / np.minimum(before - beyond, -TINY), 0.0), 1.0)
    part = np.where(beyond > 0.0, part, 2.0 - beyond)
    which = part.argmin(axis=0)
    return _Crossing(low=low, high=high, part=np.minimum(part[which, rows], 1.0), which=which)


def _inside(crossing: _Crossing) -> Array:
    """Levels of the second grid, with one where the crossing is expected."""
    parts = np.empty((crossing.part.size, SECOND_GRID.size + 1))
    parts[:, :-1] = SECOND_GRID
    parts[:, -1] = np.minimum(np.maximum(crossing.part, INSIDE[0]), INSIDE[1])
    parts.sort(axis=-1)
    low, high = crossing.low[-1, :, np.newaxis], crossing.high[-1, :, np.newaxis]
    return low + (high - low) * parts
