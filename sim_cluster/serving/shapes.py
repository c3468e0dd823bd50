"""Loads with a name: steady, ramp, step, spike, diurnal day, retry storm."""

import numpy as np

from fleetline.errors import ModelError
from sim_cluster.serving.rates import RateTrace

BIN_S = 10.0
"""Resolution of a shape. [s]"""

DAY_S = 86_400.0


def steady(*, rate_per_s: float, duration_s: float) -> RateTrace:
    """Hold one rate all the time."""
    return RateTrace.of([0.0, duration_s], [rate_per_s])


def ramp(*, from_per_s: float, to_per_s: float, duration_s: float) -> RateTrace:
    """From one rate to another in a straight line."""
    edges, middles = _grid(duration_s)
    return RateTrace.of(edges, from_per_s + (to_per_s - from_per_s) * middles / duration_s)


def step(*, before_per_s: float, after_per_s: float, at_s: float, duration_s: float) -> RateTrace:
    """One rate, then at once another."""
    if not 0 < at_s < duration_s:
        raise ModelError(f"at_s must be > 0 and < duration_s ({duration_s:g}), got {at_s:g}")
    return RateTrace.of([0.0, at_s, duration_s], [before_per_s, after_per_s])


def spike(
    *, rate_per_s: float, peak_per_s: float, at_s: float, length_s: float, duration_s: float
) -> RateTrace:
    """Put a rectangular peak on a steady rate."""
    if not (at_s > 0 and length_s > 0 and at_s + length_s < duration_s):
        raise ModelError(
            f"at_s and length_s must be > 0 and end before duration_s ({duration_s:g}), "
            f"got {at_s:g} and {length_s:g}"
        )
    edges = [0.0, at_s, at_s + length_s, duration_s]
    return RateTrace.of(edges, [rate_per_s, peak_per_s, rate_per_s])


def diurnal(
    *, mean_per_s: float, peak_to_mean: float = 1.75, duration_s: float = DAY_S, peak_at_s: float
) -> RateTrace:
    """
    Let a day be a wave around its mean, the night as far below it as the day is above.

    The default peak is that of a public chat service over a week.
    """
    if not 1 <= peak_to_mean <= 2:
        raise ModelError(f"peak_to_mean must be >= 1 and <= 2, got {peak_to_mean:g}")
    edges, middles = _grid(duration_s)
    wave = np.cos(2.0 * np.pi * (middles - peak_at_s) / DAY_S)
    return RateTrace.of(edges, mean_per_s * (1.0 + (peak_to_mean - 1.0) * wave))


def retry_storm(
    *,
    rate_per_s: float,
    at_s: float,
    outage_s: float,
    duration_s: float,
    retry_share: float = 0.7,
    backoff_s: float = 10.0,
) -> RateTrace:
    """
    Let the requests of an outage come back: nothing arrives during it, then everybody tries again.

    Each wave of retries is `retry_share` of the one before and comes twice as late, beginning
    with the requests of the outage and `backoff_s`.
    """
    if not 0 < retry_share < 1:
        raise ModelError(f"retry_share must be > 0 and < 1, got {retry_share:g}")
    edges, middles = _grid(duration_s)
    rates = np.full(middles.size, float(rate_per_s))
    end_s = at_s + outage_s
    rates[(middles >= at_s) & (middles < end_s)] = 0.0
    wave, begin_s, width_s = rate_per_s * outage_s * retry_share, end_s, backoff_s
    while wave >= 1.0 and begin_s < duration_s:
        inside = (middles >= begin_s) & (middles < begin_s + width_s)
        rates[inside] += wave / (BIN_S * max(1, int(inside.sum())))
        begin_s, width_s, wave = begin_s + width_s, 2.0 * width_s, wave * retry_share
    return RateTrace.of(edges, rates)


def _grid(duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    edges = np.append(np.arange(0.0, duration_s, BIN_S), duration_s)
    return edges, (edges[:-1] + edges[1:]) / 2
