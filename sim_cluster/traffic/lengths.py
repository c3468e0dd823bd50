"""Lengths of requests: prompt and output tokens, drawn or taken from a trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class Lengths(Protocol):
    """A distribution of request sizes."""

    def draw(self, chance: np.random.Generator) -> tuple[int, int]:
        """Draw prompt and output tokens of one request. [tokens]"""
        ...


@dataclass(frozen=True, slots=True)
class FixedLengths:
    """Every request alike."""

    prompt_tokens: int
    output_tokens: int

    def draw(self, chance: np.random.Generator) -> tuple[int, int]:  # noqa: ARG002
        """Return the lengths. [tokens]"""
        return self.prompt_tokens, self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormalLengths:
    """Skewed lengths, as chat has them; cut at `longest_tokens`."""

    mean_prompt_tokens: float
    mean_output_tokens: float
    variation: float = 0.8
    """Standard deviation over mean, of both lengths before the cut."""
    longest_tokens: int = 8192

    def draw(self, chance: np.random.Generator) -> tuple[int, int]:
        """Draw both lengths independently. [tokens]"""
        return self._one(self.mean_prompt_tokens, chance), self._one(
            self.mean_output_tokens, chance
        )

    def _one(self, mean_tokens: float, chance: np.random.Generator) -> int:
        variance = math.log1p(self.variation**2)
        drawn = chance.lognormal(math.log(mean_tokens) - variance / 2, math.sqrt(variance))
        return max(1, min(round(drawn), self.longest_tokens))


@dataclass(frozen=True, slots=True)
class SampledLengths:
    """Pairs seen elsewhere, for instance in a trace, drawn with equal probability."""

    pairs: Sequence[tuple[int, int]]

    def draw(self, chance: np.random.Generator) -> tuple[int, int]:
        """Draw one pair. [tokens]"""
        return self.pairs[int(chance.integers(len(self.pairs)))]
