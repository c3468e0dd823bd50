"""
The search for the most that may be offered: a grid around a sketch of it, and lines between.

What is missed is nearly exponential in the number in the batch, so logarithms are nearly straight.
"""

from math import log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fleetline.model.bounds import Bounds
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.loop import open_loop
from fleetline.model.sketch import sketch
from fleetline.model.slots import capacity_per_s
from fleetline.model.swing import TINY

AROUND: Final = np.array([-0.18, -0.07, 0.02, 0.13])
"""The first grid, in logarithms, around where the sketch expects the ceiling."""
EVERYWHERE: Final = np.linspace(0.0, 1.0, AROUND.size)
"""The grid where the ceiling is not there: parts of the way from one request alone to the full
batch, in logarithms."""
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
"""What is looked at beside bounds: logarithms of rate, step time and mean TTFT, loop gain, prefill
utilization, and logarithm of what is offered."""


class Found(NamedTuple):
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

    A grid around that, or if the ceiling is not there one from a request alone to the full batch,
    and a straight line between the logarithms of what is missed at the two points between which
    that begins. If these are too far apart it is looked at again between them.
    """
    asked = _Asked(lanes, bounds, capacity)
    most = np.log(np.maximum(lanes.batch_limit, 2.0 * LEAST_CONCURRENCY))
    levels = np.minimum(np.maximum(np.log(expected) + AROUND, LEAST_LEVEL), most)
    table = asked.look(levels)
    over = _is_over(table)
    below, above = over[:, 0] & (levels[:, 0] > LEAST_LEVEL), ~over[:, -1]
    outside = (below | (above & (levels[:, -1:] < most)[:, 0])).nonzero()[0]
    if outside.size:
        levels = np.broadcast_to(LEAST_LEVEL + (most - LEAST_LEVEL) * EVERYWHERE, levels.shape)
        table[:, outside] = asked.only(outside).look(levels[outside])
        over = _is_over(table)
    possible, crossing = ~over[:, 0], _crossing(table, over)
    for _ in range(MOST_LOOKS):
        wide = (crossing.is_wide() & possible).nonzero()[0]
        if not wide.size:
            break
        crossing.update(wide, asked.only(wide).closer(crossing.only(wide)))
    return Found(
        capacity_per_s=capacity.reshape(-1, 1),
        possible=possible,
        missed=crossing.which,
        at=crossing.low + crossing.part * (crossing.high - crossing.low),
    )


class _Asked(NamedTuple):
    """Questions, and how they are looked at."""

    lanes: Lanes
    bounds: Bounds
    capacity_per_s: Array

    def only(self, rows: NDArray[np.intp]) -> "_Asked":
        """Some of them."""
        if rows.size == self.capacity_per_s.size:
            return self
        return _Asked(self.lanes.only(rows), self.bounds.only(rows), self.capacity_per_s[rows])

    def look(self, levels: Array) -> Array:
        """
        Logarithm of what is missed over what may be, by bound, and what is `SEEN`.

        Shape (bounds + SEEN, questions, points), at logarithms of what is offered.
        """
        levels = levels[0] if self.lanes.is_alone else levels
        loop = open_loop(self.lanes, np.exp(levels))
        missed, first_s = self.bounds.missed(self.lanes, loop, self.capacity_per_s)
        logarithms = np.log(np.array([loop.arrival_rate_per_s, loop.token_s, first_s]))
        seen = (*logarithms, loop.loop_gain, loop.prefill_utilization, levels)
        table = np.array([*missed, *seen])
        return table[:, np.newaxis] if self.lanes.is_alone else table

    def closer(self, crossing: "_Crossing") -> "_Crossing":
        """Look again between the two points of a crossing."""
        table = self.look(_inside(crossing))
        ends = crossing.low[..., np.newaxis], crossing.high[..., np.newaxis]
        table = np.concatenate([ends[0], table, ends[1]], axis=-1)
        return _crossing(table, _is_over(table))


def _is_over(table: Array) -> NDArray[np.bool_]:
    """Whether any bound is missed, shape (questions, points)."""
    return np.asarray(np.logical_or.reduce(table[:-SEEN] > 0.0, axis=0))


class _Crossing(NamedTuple):
    """Two points between which a bound begins to be missed, or the last two."""

    low: Array
    """Shape (bounds + SEEN, questions)."""
    high: Array
    part: Array
    """Part of the way between them."""
    which: NDArray[np.intp]
    """The bound."""
    missed: NDArray[np.bool_]
    """Whether any is missed at the second point."""

    def is_wide(self) -> NDArray[np.bool_]:
        """Whether anything is missed, and where it begins is not known well."""
        return np.asarray(self.missed & (self.high[-1] - self.low[-1] > NARROW))

    def only(self, rows: NDArray[np.intp]) -> "_Crossing":
        """The same of some questions."""
        ends = self.low[:, rows], self.high[:, rows]
        return _Crossing(*ends, self.part[rows], self.which[rows], self.missed[rows])

    def update(self, rows: NDArray[np.intp], some: "_Crossing") -> None:
        """Take over what is known of some questions."""
        self.low[:, rows], self.high[:, rows] = some.low, some.high
        self.part[rows], self.which[rows], self.missed[rows] = some.part, some.which, some.missed


def _crossing(table: Array, over: NDArray[np.bool_]) -> _Crossing:
    """Find it in a table of points; if no bound is missed, between the last two of them."""
    over[:, -1], missed = True, over[:, -1].copy()
    after = np.maximum(over.argmax(axis=-1), 1)
    rows = np.arange(after.size)
    low, high = table[:, rows, after - 1], table[:, rows, after]
    before, beyond = low[:-SEEN], high[:-SEEN]
    part = before / np.minimum(before - beyond, -TINY)
    part = np.where(beyond > 0.0, np.minimum(np.maximum(part, 0.0), 1.0), 2.0 - beyond)
    which = part.argmin(axis=0)
    return _Crossing(low, high, np.minimum(part[which, rows], 1.0), which, missed)


def _inside(crossing: _Crossing) -> Array:
    """Levels between the two points, one of them where the crossing is expected."""
    parts = np.empty((crossing.part.size, INSIDE.size + 1))
    parts[:, :-1] = INSIDE
    parts[:, -1] = np.minimum(np.maximum(crossing.part, EXPECTED[0]), EXPECTED[1])
    parts.sort(axis=-1)
    low, high = crossing.low[-1, :, np.newaxis], crossing.high[-1, :, np.newaxis]
    return low + (high - low) * parts
