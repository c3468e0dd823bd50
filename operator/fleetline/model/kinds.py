"""A distribution of lengths, reduced to a few kinds of requests and a few moments."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fleetline.model.workload import TokenLengths

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """
    A few representative kinds of requests, axis last.

    Moments of them are worked out once, when they are first needed.
    """

    prompt_tokens: Array
    """Part of the prompt that has to be computed. [tokens]"""
    output_tokens: Array
    cached_tokens: Array
    output_variance: Array
    """Variance of output lengths within a kind. [tokens^2]"""
    output_third: Array
    """Third central moment of output lengths within a kind. [tokens^3]"""
    weights: Array

    @cached_property
    def mean_prompt_tokens(self) -> Array:
        """Mean of `prompt_tokens`. [tokens]"""
        return self._mean(self.prompt_tokens)

    @cached_property
    def prompt_square(self) -> Array:
        """Mean square of `prompt_tokens`. [tokens^2]"""
        return self._mean(self.prompt_tokens * self.prompt_tokens)

    @cached_property
    def mean_output_tokens(self) -> Array:
        """Mean of `output_tokens`. [tokens]"""
        return self._mean(self.output_tokens)

    @cached_property
    def stay_square(self) -> Array:
        """Square of the coefficient of variation of all output lengths."""
        square = self.output_tokens * self.output_tokens + self.output_variance
        average = self.mean_output_tokens
        return self._mean(square) / (average * average) - 1.0

    @cached_property
    def prompt_cubic(self) -> Array:
        """Mean cube of `prompt_tokens` over the cube of their mean."""
        cubes = self.prompt_tokens * self.prompt_tokens * self.prompt_tokens
        average = self.mean_prompt_tokens
        return self._mean(cubes) / (average * average * average)

    @cached_property
    def shortness(self) -> Array:
        """Square of the mean of 1 / sqrt(tokens that follow the first). [1/tokens]"""
        root = self._mean(1.0 / np.sqrt(np.maximum(self.output_tokens - 1.0, 1.0)))
        return root * root

    @cached_property
    def prompt_pairs(self) -> Array:
        """Pairs of a prompt's token and an earlier one, by kind. [tokens^2]"""
        return self.prompt_tokens * (self.cached_tokens + self.prompt_tokens / 2.0)

    def _mean(self, values: Array) -> Array:
        average: Array = np.vecdot(self.weights, values)
        return average


KIND_FIELDS = tuple(field.name for field in fields(Kinds))

PROMPT_STRATA = np.array([0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.94, 0.98, 0.995, 1.0])
"""Quantiles that cut the prompt lengths: finer where the tail of latency is made."""

OUTPUT_STRATA = np.array([0.0, 0.45, 0.88, 1.0])
"""Quantiles that cut the output lengths inside each stratum of prompts."""


@lru_cache(maxsize=256)
def condensed(lengths: TokenLengths) -> Kinds:
    """Reduce a distribution to at most 27 kinds of requests with the same means."""
    computed = lengths.prompt_tokens - lengths.cached_prompt_tokens
    most = (len(PROMPT_STRATA) - 1) * (len(OUTPUT_STRATA) - 1)
    if lengths.weights.size <= most:
        return Kinds(
            prompt_tokens=computed,
            cached_tokens=lengths.cached_prompt_tokens,
            output_tokens=lengths.output_tokens,
            output_variance=np.zeros_like(computed),
            output_third=np.zeros_like(computed),
            weights=lengths.weights,
        )
    rows = []
    for stratum in _strata(computed, lengths.weights, PROMPT_STRATA):
        outputs = lengths.output_tokens[stratum]
        for inner in _strata(outputs, lengths.weights[stratum], OUTPUT_STRATA):
            chosen = stratum[inner]
            weight = lengths.weights[chosen]
            total = weight.sum()
            said = lengths.output_tokens[chosen]
            output = weight @ said / total
            rows.append(
                (
                    weight @ computed[chosen] / total,
                    weight @ lengths.cached_prompt_tokens[chosen] / total,
                    output,
                    weight @ (said - output) ** 2 / total,
                    weight @ (said - output) ** 3 / total,
                    total,
                )
            )
    prompts, cached, outputs, variances, thirds, weights = np.array(rows).T
    return Kinds(
        prompt_tokens=prompts,
        cached_tokens=cached,
        output_tokens=outputs,
        output_variance=variances,
        output_third=thirds,
        weights=weights,
    )


@lru_cache(maxsize=256)
def mean_contexts(lengths: TokenLengths, window_tokens: int) -> tuple[float, float, float]:
    """
    Mean context of a request in the decode phase, its mean square, and the mean within a window.

    A request that says o tokens is seen o times, with its prompt and 0 to o tokens of answer.
    """
    share = lengths.weights * lengths.output_tokens
    share = share / share.sum()
    half = lengths.output_tokens / 2.0
    middle = lengths.prompt_tokens + half
    square = middle * middle + half * half / 3.0
    windowed = np.minimum(middle, window_tokens)
    return float(share @ middle), float(share @ square), float(share @ windowed)


@lru_cache(maxsize=256)
def shared_stay_share(lengths: TokenLengths) -> float:
    """
    Share of its stay that a request spends with another that came with it, E[min] / E.

    Bursts and gaps of arrivals count in the batch as far as requests stay for equally long.
    """
    order = np.argsort(lengths.output_tokens)
    stay, weights = lengths.output_tokens[order], lengths.weights[order]
    longer = np.cumsum(weights[::-1])[::-1]
    shorter = (weights * stay * (2.0 * longer - weights)).sum()
    return float(shorter / (weights @ stay))


def stacked(kinds: Sequence[Kinds]) -> Kinds:
    """Pad to one number of kinds with weight zero; shape (questions, 1, kinds)."""
    width = max(kind.weights.size for kind in kinds)
    table = np.zeros((len(KIND_FIELDS), len(kinds), 1, width))
    table[:2] = 1.0  # lengths of no request
    for row, kind in enumerate(kinds):
        table[:, row, 0, : kind.weights.size] = [getattr(kind, name) for name in KIND_FIELDS]
    return Kinds(**dict(zip(KIND_FIELDS, table, strict=True)))


def _strata(values: Array, weights: Array, cuts: Array) -> list[NDArray[np.intp]]:
    """Index sets of consecutive quantile ranges; empty ones are left out."""
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(weights[order]) - weights[order] / 2
    which = np.searchsorted(cuts * weights.sum(), middle, side="right")
    parts = [order[which == part] for part in range(1, len(cuts) + 1)]
    return [part for part in parts if part.size and weights[part].sum() > 0]
