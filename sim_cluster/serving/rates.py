"""
Arrival rates over time, and arrivals drawn from them.

Arrivals are doubly stochastic: in every slice of `BURST_S` the rate is multiplied by a gamma
variable, so the number in a slice is negative binomial with variance D times its mean, and so is
the variance of any longer stretch of slices. D = 1 is Poisson.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetline.errors import ModelError
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.lengths import Lengths

Floats = NDArray[np.float64]

BURST_S = 1.0
"""Length of a burst: at this length the dispersion of published traces was measured. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateTrace:
    """A rate of arrivals, constant within each bin."""

    edges_s: Floats
    """Ends of the bins, one more than there are bins. [s]"""
    rates_per_s: Floats

    @classmethod
    def of(cls, edges_s: ArrayLike, rates_per_s: ArrayLike) -> Self:
        """
        Build from the ends of bins and their rates.

        Raises
        ------
        ModelError
            If the ends do not rise, or a rate is negative.
        """
        edges = np.asarray(edges_s, dtype=np.float64)
        rates = np.asarray(rates_per_s, dtype=np.float64)
        if edges.size != rates.size + 1 or not rates.size or (np.diff(edges) <= 0).any():
            raise ModelError("edges_s must rise and be one more than the rates, got otherwise")
        if not (np.isfinite(rates).all() and rates.min() >= 0):
            raise ModelError(f"rates must be >= 0 requests/s, got {rates.min():g}")
        return cls(edges_s=edges, rates_per_s=rates)

    @property
    def requests(self) -> float:
        """Expected number of requests."""
        return float(self.rates_per_s @ np.diff(self.edges_s))

    def scaled(self, factor: float) -> Self:
        """Return the same shape with every rate multiplied."""
        return self.of(self.edges_s, self.rates_per_s * factor)

    def cut(self, start_s: float, end_s: float) -> Self:
        """Return a stretch of time, the clock set to zero at its start."""
        start_s, end_s = max(start_s, self.edges_s[0]), min(end_s, self.edges_s[-1])
        inside = self.edges_s[(self.edges_s > start_s) & (self.edges_s < end_s)]
        edges = np.concatenate(([start_s], inside, [end_s]))
        if not end_s > start_s:
            raise ModelError(f"end_s must be > start_s ({start_s:g} s), got {end_s:g}")
        return self.of(edges - start_s, self.rates_per_s[self._bins(edges[:-1])])

    def draw(
        self, lengths: Lengths, *, dispersion: float = 1.0, seed: int = 0, burst_s: float = BURST_S
    ) -> Arrivals:
        """
        Draw requests.

        Parameters
        ----------
        lengths
            Of prompts and answers.
        dispersion
            Index of dispersion of counts, variance over mean, in stretches of `burst_s` and
            longer. >= 1
        seed
            The same seed gives the same requests.
        burst_s
            Length of a burst. [s]
        """
        if not dispersion >= 1:
            raise ModelError(f"dispersion must be >= 1, got {dispersion:g}")
        random = np.random.Generator(np.random.PCG64(seed))
        edges = self._slices(burst_s)
        widths = np.diff(edges)
        means = self.rates_per_s[self._bins(edges[:-1])] * widths
        if dispersion > 1:
            means = random.gamma(means / (dispersion - 1.0), dispersion - 1.0)
        counts = random.poisson(means)
        begins = np.repeat(edges[:-1], counts)
        times = np.sort(begins + random.random(begins.size) * np.repeat(widths, counts))
        return Arrivals.of(
            times,
            lengths.prompt.draw(random, times.size),
            lengths.output.draw(random, times.size),
        )

    def _bins(self, moments_s: Floats) -> NDArray[np.intp]:
        return np.searchsorted(self.edges_s, moments_s, side="right") - 1

    def _slices(self, burst_s: float) -> Floats:
        grid = np.arange(self.edges_s[0], self.edges_s[-1], burst_s)
        return np.union1d(grid, self.edges_s)
