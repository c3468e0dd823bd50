"""
What arrival rate to be ready for: the likely maximum until a replica asked for now would serve.

    ratio   = max of the rate over the next horizon / level          (one for each past moment)
    expected = level now x quantile of the ratio over two hours

What counts is the maximum over the whole start-up time, not the value at its end: a replica removed
now cannot be back sooner. The level is the exponentially weighted mean whose forecasts lost least
(pinball loss) over the same two hours. Before there is history a prior ratio takes its place.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TIME_CONSTANTS_S: Final = (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Of the levels that compete. [s]"""

HURRIED_S: Final = 30.0
"""Levels faster than this compete only where the horizon is less than twice as long as they are:
where a replica takes minutes to start, following every gust helps nobody. [s]"""

SLOWEST_HORIZONS: Final = 3.0
"""Levels slower than so many horizons do not compete: they would still remember the last peak when
replicas that are given back could long have been there again."""

QUANTILE: Final = 0.95
"""Of the ratio: how often the expected rate should not be exceeded within a horizon."""

MEMORY_S: Final = 7200.0
"""Ratios older than this do not count. [s]"""

PRIOR_RATIO: Final = 1.08
PRIOR_RATIO_PER_ROOT_S: Final = 0.008
"""Before there is history: the ratio grows with the square root of the horizon, as a random walk's
maximum does; 1.22 at 300 s. [1/sqrt(s)]"""

PRIOR_SPANS: Final = 2.0
"""Weight of the prior: as much as this many horizons (of at least `LEAST_SPAN_S`) of history."""

LEAST_SPAN_S: Final = 300.0
LEAST_SPAN_HORIZONS: Final = 5.0
"""A span is a horizon, but at least five minutes, or five horizons if those are shorter."""

HIGHEST_RATIO: Final = 10.0
"""Larger ones count as this: what follows the first request ever says nothing about growth."""

RATE_FLOOR_PER_S: Final = 1 / 60
"""Added to rates before dividing: one request in a minute is not a trend. [1/s]"""

FLOOR_SHARE: Final = 0.05
"""The floor is at least this share of the largest rate remembered: how the first requests of a
night multiply says nothing about the day. 0..1"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateHistory:
    """Arrival rates as seen turn by turn, and the levels as they stood then; immutable."""

    times_s: Array
    """Shape (n,). [s]"""
    rates_per_s: Array
    """Shape (n,). [1/s]"""
    levels_per_s: NDArray[np.float32]
    """Shape (n, time constants); of a thousand fleets they are most of what is remembered. [1/s]"""

    @classmethod
    def empty(cls) -> Self:
        """Nothing seen yet."""
        none = np.empty(0)
        return cls(
            times_s=none,
            rates_per_s=none,
            levels_per_s=np.empty((0, len(TIME_CONSTANTS_S)), dtype=np.float32),
        )

    def add(self, at_s: float, rate_per_s: float) -> Self:
        """Append one turn; one that is not later than the last replaces what it overlaps."""
        keep = (self.times_s < at_s) & (self.times_s >= at_s - MEMORY_S)
        times, rates, levels = self.times_s[keep], self.rates_per_s[keep], self.levels_per_s[keep]
        level = np.full(len(TIME_CONSTANTS_S), rate_per_s)
        if times.size:
            since_s, age_s = at_s - times[-1], at_s - times[0]
            # Young levels give a new rate at least half the weight of a plain mean: what was seen
            # first must not linger in the slow ones.
            kept = np.minimum(
                np.exp(-since_s / np.array(TIME_CONSTANTS_S)), 1 - since_s / age_s / 2
            )
            level = levels[-1] * kept + rate_per_s * (1 - kept)
        return type(self)(
            times_s=np.append(times, at_s),
            rates_per_s=np.append(rates, rate_per_s),
            levels_per_s=np.concatenate([levels, level[np.newaxis].astype(np.float32)]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected maximum and what it is made of."""

    expected_rate_per_s: float
    level_per_s: float
    ratio: float
    horizon_s: float


def expect_maximum(
    history: RateHistory, horizon_s: float, *, smoothing_s: float = 0.0, quantile: float = QUANTILE
) -> Forecast:
    """
    Rate that the coming maximum exceeds with probability 1 - `quantile`.

    Parameters
    ----------
    history
        At least one turn.
    horizon_s
        Measured start-up time plus one period. [s], >= 0
    smoothing_s
        Requests that stay for minutes average over arrivals: the maximum that counts is that of
        the mean rate over this time. [s]
    """
    floor_per_s = max(RATE_FLOOR_PER_S, FLOOR_SHARE * float(history.rates_per_s.max()))
    rates = _smooth(history.times_s, history.rates_per_s, smoothing_s) + floor_per_s
    levels = history.levels_per_s.astype(np.float64) + floor_per_s
    past, maxima, span_s = _past_maxima(history.times_s, rates, horizon_s)
    prior = PRIOR_RATIO + PRIOR_RATIO_PER_ROOT_S * float(np.sqrt(horizon_s))
    constants = np.array(TIME_CONSTANTS_S)
    fitting = constants >= min(HURRIED_S, horizon_s / 2)
    fitting &= constants <= max(HURRIED_S, SLOWEST_HORIZONS * horizon_s)
    chosen = min(int(np.argmax(fitting)) + 1, int(np.flatnonzero(fitting)[-1]))
    level = float(levels[-1, chosen])
    expected = prior * level
    if maxima.size:
        ratios = np.minimum(maxima[:, np.newaxis] / levels[past], HIGHEST_RATIO)
        order = min(maxima.size - 1, int(np.ceil(quantile * maxima.size)) - 1)
        learned = np.partition(ratios, order, axis=0)[order]
        missed = maxima[:, np.newaxis] - levels[past] * learned
        loss = np.maximum(quantile * missed, (quantile - 1) * missed).mean(axis=0)
        chosen = int(np.argmin(np.where(fitting, loss, np.inf)))
        level = float(levels[-1, chosen])
        spans = span_s / max(horizon_s, min(LEAST_SPAN_S, LEAST_SPAN_HORIZONS * horizon_s))
        weight = spans / (spans + PRIOR_SPANS)
        expected = weight * level * float(learned[chosen]) + (1 - weight) * expected
    # After a jump its own ratio multiplies the new level: nothing is expected beyond the largest
    # rate that was seen, and what the prior lets it grow by.
    expected = min(expected, prior * float(rates.max()))
    expected = max(expected, float(rates[-1]))
    return Forecast(
        expected_rate_per_s=max(0.0, expected - floor_per_s),
        level_per_s=level - floor_per_s,
        ratio=expected / level,
        horizon_s=horizon_s,
    )


def _smooth(times_s: Array, rates: Array, smoothing_s: float) -> Array:
    """Trailing mean over `smoothing_s`."""
    if smoothing_s <= 0 or rates.size < 2:
        return rates
    total = np.concatenate([[0.0], np.cumsum(rates)])
    first = np.searchsorted(times_s, times_s - smoothing_s, side="right")
    upto = np.arange(1, rates.size + 1)
    means: Array = (total[upto] - total[first]) / (upto - first)
    return means


def median_s(times_s: Array) -> float:
    """Median of at least one time, as `np.median` at a tenth of its cost for few of them. [s]"""
    ordered = np.sort(times_s)
    return float(ordered[(times_s.size - 1) // 2] + ordered[times_s.size // 2]) / 2


def _past_maxima(
    times_s: Array, rates: Array, horizon_s: float
) -> tuple[NDArray[np.intp], Array, float]:
    """Past moments whose horizon has ended, the maximum within each, and the span they cover."""
    if times_s.size < 2:
        return np.empty(0, dtype=np.intp), np.empty(0), 0.0
    period_s = median_s(np.diff(times_s))
    ahead = max(1, round(horizon_s / max(period_s, 1e-3)))
    if times_s.size <= ahead:
        return np.empty(0, dtype=np.intp), np.empty(0), 0.0
    maxima = np.lib.stride_tricks.sliding_window_view(rates, ahead + 1).max(axis=1)
    unbroken = times_s[ahead:] - times_s[:-ahead] <= 1.5 * max(horizon_s, period_s)
    past = np.flatnonzero(unbroken)
    return past, maxima[past], float(past.size * period_s)
