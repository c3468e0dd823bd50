"""
The search for the most that may be offered: a grid around a sketch of it, and lines between.

What is missed is nearly exponential in the number in the batch, so logarithms are nearly straight.
"""

from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.model.bounds import Bounds
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import open_loop
from fleetline.model.sketch import sketch
from fleetline.model.slots import capacity_per_s
from fleetline.model.swing import TINY

AROUND: Final = np.array([-np.inf, -0.4, -0.2, -0.11, -0.05, 0.0, 0.05, 0.11, 0.2, 0.4, np.inf])
"""The first grid, in logarithms, around where the sketch expects the ceiling: from one request
alone to the full batch."""
NARROW: Final = 0.15
"""Interval of logarithms, narrow enough for a straight line."""
INSIDE: Final = np.array([0.17, 0.34, 0.5, 0.66, 0.83])
"""Parts of the way between two points between which it is looked at again."""
EXPECTED: Final = (0.03, 0.97)
"""Where between them the ceiling may be expected."""
MOST_LOOKS: Final = 4
"""Looks after the first: the widest interval is narrow after three."""
LEAST_CONCURRENCY: Final = 1e-3
"""Requests in the batch at which a request is alone. [requests]"""
LEAST_LEVEL: Final = log(LEAST_CONCURRENCY)
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
    """Find the most that may be offered, and what is missed beyond."""
    capacity = capacity_per_s(lanes)
    return search_around(lanes, bounds, capacity, sketch(lanes, bounds, capacity))


def search_around(lanes: Lanes, bounds: Bounds, capacity: Array, expected: Array) -> Found:
    """
    Find it around where it is expected. [requests in the batch], shape (questions, 1)

    A grid around that, with one request alone and the full batch at its ends, and a straight line
    between the logarithms of what is missed at the two points between which that begins. If these
    are too far apart it is looked at again between them.
    """
    most = np.log(np.maximum(lanes.batch_limit, 2.0 * LEAST_CONCURRENCY))
    levels = np.minimum(np.maximum(np.log(expected) + AROUND, LEAST_LEVEL), most)
    table = _look(lanes, bounds, capacity, levels)
    possible = np.logical_and.reduce(table[:-SEEN, :, 0] <= 0.0, axis=0)
    crossing = _crossing(table)
    for _ in range(MOST_LOOKS):
        wide = (crossing.is_wide() & possible).nonzero()[0]
        if not wide.size:
            break
        if wide.size == possible.size:
            crossing = _closer(lanes, bounds, capacity, crossing)
        else:
            some = _closer(lanes.only(wide), bounds.only(wide), capacity[wide], crossing.only(wide))
            crossing.update(wide, some)
    return Found(
        capacity_per_s=capacity.reshape(-1, 1),
        possible=possible,
        missed=crossing.which,
        at=crossing.low + crossing.part * (crossing.high - crossing.low),
    )


def _closer(lanes: Lanes, bounds: Bounds, capacity: Array, crossing: "_Crossing") -> "_Crossing":
    """Look again between the two points of a crossing."""
    table = _look(lanes, bounds, capacity, _inside(crossing))
    ends = crossing.low[..., np.newaxis], crossing.high[..., np.newaxis]
    return _crossing(np.concatenate([ends[0], table, ends[1]], axis=-1))


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

    def is_wide(self) -> NDArray[np.bool_]:
        """Whether anything is missed, and where it begins is not known well."""
        missed = np.logical_or.reduce(self.high[:-SEEN] > 0.0, axis=0)
        return np.asarray(missed & (self.high[-1] - self.low[-1] > NARROW))

    def only(self, rows: NDArray[np.intp]) -> "_Crossing":
        """The same of some questions."""
        return _Crossing(self.low[:, rows], self.high[:, rows], self.part[rows], self.which[rows])

    def update(self, rows: NDArray[np.intp], some: "_Crossing") -> None:
        """Take over what is known of some questions."""
        self.low[:, rows], self.high[:, rows] = some.low, some.high
        self.part[rows], self.which[rows] = some.part, some.which


def _crossing(table: Array) -> _Crossing:
    over = np.logical_or.reduce(table[:-SEEN] > 0.0, axis=0)
    over[:, -1] = True
    after = np.maximum(over.argmax(axis=-1), 1)
    rows = np.arange(after.size)
    low, high = table[:, rows, after - 1], table[:, rows, after]
    before, beyond = low[:-SEEN], high[:-SEEN]
    part = before / np.minimum(before - beyond, -TINY)
    part = np.where(beyond > 0.0, np.minimum(np.maximum(part, 0.0), 1.0), 2.0 - beyond)
    which = part.argmin(axis=0)
    return _Crossing(low=low, high=high, part=np.minimum(part[which, rows], 1.0), which=which)


def _inside(crossing: _Crossing) -> Array:
    """Levels between the two points, one of them where the crossing is expected."""
    parts = np.empty((crossing.part.size, INSIDE.size + 1))
    parts[:, :-1] = INSIDE
    parts[:, -1] = np.minimum(np.maximum(crossing.part, EXPECTED[0]), EXPECTED[1])
    parts.sort(axis=-1)
    low, high = crossing.low[-1, :, np.newaxis], crossing.high[-1, :, np.newaxis]
    return low + (high - low) * parts
