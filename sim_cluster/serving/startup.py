"""How long a replica takes from creation to its first request: a distribution, not a constant."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetline.errors import ModelError


@dataclass(frozen=True, slots=True, eq=False)
class StartupTime:
    """Start-up times by quantile: a draw is the inverse of the distribution at a uniform number."""

    quantiles_s: NDArray[np.float64]
    """Start-up times at equally spaced quantiles, from the least to the most. [s]"""

    @classmethod
    def fixed(cls, startup_time_s: float) -> Self:
        """Every replica takes the same time."""
        return cls.measured([startup_time_s])

    @classmethod
    def measured(cls, samples_s: ArrayLike) -> Self:
        """Draw between measured start-up times, each as likely as the next."""
        times = np.sort(np.atleast_1d(np.asarray(samples_s, dtype=np.float64)))
        if not times.size or not np.isfinite(times).all() or times[0] < 0:
            raise ModelError(f"start-up times must be >= 0 s and finite, got {times.tolist()}")
        return cls(times)

    @classmethod
    def spread(cls, median_s: float, ratio: float) -> Self:
        """
        Log-uniform around a median, from `median / ratio` to `median * ratio`.

        Raises
        ------
        ModelError
            If `ratio` is below 1.
        """
        if not ratio >= 1:
            raise ModelError(f"ratio must be >= 1, got {ratio:g}")
        return cls.measured(median_s * ratio ** np.linspace(-1.0, 1.0, 65))

    def draw_s(self, random: np.random.Generator) -> float:
        """One start-up time. [s]"""
        grid = np.linspace(0.0, 1.0, self.quantiles_s.size)
        return float(np.interp(random.random(), grid, self.quantiles_s))
