"""What requests look like: how many tokens they bring, ask for, and how unevenly they arrive."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ModelError

PROMPT_NODES = 7
OUTPUT_NODES = 4
"""Points of the quadrature of lengths of which only the mean is known."""


def _nodes(count: int, spread_share: float) -> NDArray[np.float64]:
    middle = (np.arange(count) + 0.5) / count
    return 1.0 - spread_share + 2.0 * spread_share * middle


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenLengths:
    """
    The joint distribution of prompt and output lengths, as equally shaped weighted points.

    A point may be one request of a trace, or a node of a quadrature.
    """

    prompt_tokens: NDArray[np.float64]
    """Shape (n,). [tokens], >= 1"""
    output_tokens: NDArray[np.float64]
    """Shape (n,). [tokens], >= 1"""
    weights: NDArray[np.float64]
    """Shape (n,), sums to 1."""
    cached_prompt_tokens: NDArray[np.float64]
    """Shape (n,): part of each prompt found in the prefix cache. [tokens]"""

    @classmethod
    def fixed(cls, prompt_tokens: float, output_tokens: float) -> Self:
        """Every request alike."""
        return cls.of(np.array([prompt_tokens]), np.array([output_tokens]))

    @classmethod
    def evenly(
        cls, prompt_tokens: float, output_tokens: float, *, spread_share: float = 0.5
    ) -> Self:
        """
        Lengths that vary evenly and independently by a share around their means.

        For where only means are known: the same length for all would hide what long ones do.
        """
        prompts = prompt_tokens * _nodes(PROMPT_NODES, spread_share)
        outputs = output_tokens * _nodes(OUTPUT_NODES, spread_share)
        first, second = np.meshgrid(
            np.maximum(prompts, 1.0), np.maximum(outputs, 1.0), indexing="ij"
        )
        return cls.of(first.ravel(), second.ravel())

    @classmethod
    def of(
        cls,
        prompt_tokens: NDArray[np.float64],
        output_tokens: NDArray[np.float64],
        *,
        weights: NDArray[np.float64] | None = None,
        cached_prompt_tokens: NDArray[np.float64] | None = None,
    ) -> Self:
        """
        Build from points, for instance the requests of a trace.

        Raises
        ------
        ModelError
            If the arrays are empty, differ in shape, or hold lengths below one token.
        """
        prompts = np.asarray(prompt_tokens, dtype=np.float64)
        outputs = np.asarray(output_tokens, dtype=np.float64)
        if prompts.ndim != 1 or prompts.shape != outputs.shape or prompts.size == 0:
            raise ModelError(
                "prompt_tokens and output_tokens must be equally long lists of at least one "
                f"request, got shapes {prompts.shape} and {outputs.shape}"
            )
        for name, values in (("prompt_tokens", prompts), ("output_tokens", outputs)):
            if not (np.isfinite(values).all() and values.min() >= 1):
                raise ModelError(f"{name} must be >= 1 token, got {values.min():g}")
        share = np.ones_like(prompts) if weights is None else np.asarray(weights, dtype=np.float64)
        cached = np.zeros_like(prompts) if cached_prompt_tokens is None else cached_prompt_tokens
        return cls(
            prompt_tokens=prompts,
            output_tokens=outputs,
            weights=share / share.sum(),
            cached_prompt_tokens=np.minimum(cached, prompts - 1),
        )

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean prompt length. [tokens]"""
        return float(self.weights @ self.prompt_tokens)

    @property
    def mean_output_tokens(self) -> float:
        """Mean output length. [tokens]"""
        return float(self.weights @ self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """Requests that arrive: their lengths and how bursty they come."""

    lengths: TokenLengths
    dispersion: float = 1.0
    """Index of dispersion of arrival counts at the router: variance over mean; 1 is Poisson."""
