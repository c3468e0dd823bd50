"""Lengths of prompts and answers as a distribution given by percentiles."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetline.errors import ModelError

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantiles:
    """
    A distribution of token counts, between its known percentiles geometrically interpolated.

    Below the first known percentile it falls to one token; beyond the last it goes on with the
    same slope. Counts below one (digitised plots have them) are one token.
    """

    shares: Floats
    """Increasing, 0..1."""
    tokens: Floats

    @classmethod
    def of(cls, percentiles: ArrayLike, tokens: ArrayLike) -> Self:
        """
        Build from percentiles (0..100) and their values.

        Raises
        ------
        ModelError
            If percentiles do not rise between 0 and 100.
        """
        shares = np.asarray(percentiles, dtype=np.float64) / 100.0
        values = np.maximum.accumulate(np.maximum(np.asarray(tokens, dtype=np.float64), 1.0))
        if not shares.size or shares[0] < 0 or shares[-1] > 1 or (np.diff(shares) <= 0).any():
            raise ModelError(f"percentiles must rise from 0 to 100, got {(100 * shares).tolist()}")
        if shares[0] > 0:
            shares, values = np.append(0.0, shares), np.append(1.0, values)
        if shares[-1] < 1:
            slope = np.log(values[-1] / values[-2]) / (shares[-1] - shares[-2])
            # at most twice the last known value: a plot's last percentile hides its own tail
            last = values[-1] * np.exp(min(slope * (1.0 - shares[-1]), np.log(2.0)))
            shares, values = np.append(shares, 1.0), np.append(values, last)
        return cls(shares=shares, tokens=values)

    @classmethod
    def fixed(cls, tokens: float) -> Self:
        """Every request alike."""
        return cls(shares=np.array([0.0, 1.0]), tokens=np.array([tokens, tokens], np.float64))

    def draw(self, random: np.random.Generator, count: int) -> Counts:
        """Draw token counts, whole and at least one."""
        logs = np.interp(random.random(count), self.shares, np.log(self.tokens))
        return np.maximum(np.rint(np.exp(logs)), 1.0).astype(np.int32)

    @property
    def mean_tokens(self) -> float:
        """Mean, by the midpoints of ten thousand equal slices. [tokens]"""
        middles = (np.arange(10_000) + 0.5) / 10_000
        return float(np.exp(np.interp(middles, self.shares, np.log(self.tokens))).mean())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lengths:
    """Prompt and output lengths, drawn independently."""

    prompt: Quantiles
    output: Quantiles

    @classmethod
    def fixed(cls, prompt_tokens: float, output_tokens: float) -> Self:
        """Every request alike."""
        return cls(prompt=Quantiles.fixed(prompt_tokens), output=Quantiles.fixed(output_tokens))
