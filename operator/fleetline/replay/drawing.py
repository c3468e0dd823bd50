"""Random arrivals and lengths: doubly stochastic counts, and lengths from their percentiles."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ManifestError

Floats = NDArray[np.float64]

SLICE_S: Final = 1.0
"""Stretch over which the rate of a doubly stochastic process stays what was drawn. [s]"""

FIELDS: Final = ("prompt_tokens", "output_tokens")
SYNONYMS: Final = {"input_tokens": "prompt_tokens", "text_tokens": "prompt_tokens"}
SERIES_COLUMNS: Final = ("service", "model")


def draw_times_s(
    edges_s: Floats, rates_per_s: Floats, dispersion: float, random: np.random.Generator
) -> Floats:
    """
    Arrival times of a process whose rate is piecewise constant. [s]

    Parameters
    ----------
    edges_s
        Bounds of the bins, one more than rates. [s]
    rates_per_s
        Mean rate in each bin. [1/s]
    dispersion
        Variance over mean of the counts of any stretch longer than a second. >= 1

    Notes
    -----
    The rate of each second is drawn from a gamma distribution around the bin's (so counts are
    negative binomial), arrivals inside it are Poisson.
    """
    if not dispersion >= 1:
        raise ManifestError(f"dispersion must be >= 1, got {dispersion:g}")
    begin_s, end_s = float(edges_s[0]), float(edges_s[-1])
    slices = np.unique(np.concatenate((np.arange(begin_s, end_s, SLICE_S), edges_s)))
    lengths_s = np.diff(slices)
    owner = np.searchsorted(edges_s, slices[:-1], side="right") - 1
    means = rates_per_s[np.clip(owner, 0, rates_per_s.size - 1)] * lengths_s
    if dispersion > 1:
        means = random.gamma(means / (dispersion - 1), dispersion - 1)
    counts = random.poisson(means)
    times = np.repeat(slices[:-1], counts) + random.random(counts.sum()) * np.repeat(
        lengths_s, counts
    )
    return np.sort(times)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthQuantiles:
    """Token lengths by percentile, interpolated in the logarithm; prompt and answer independent."""

    percentiles: Mapping[str, Floats]
    tokens: Mapping[str, Floats]

    @classmethod
    def of(cls, table: Mapping[str, Mapping[float, float]]) -> Self:
        """Build from `{"prompt_tokens": {50: 900, ...}, "output_tokens": {...}}`."""
        for name in FIELDS:
            if len(table.get(name, {})) < 1:
                raise ManifestError(f"lengths must have rows of {name}, got none")
        ordered = {name: sorted(table[name].items()) for name in FIELDS}
        return cls(
            percentiles={name: np.array([p for p, _ in rows]) for name, rows in ordered.items()},
            tokens={
                # digitised small values may be noise below one token
                name: np.maximum.accumulate(np.maximum(1.0, [value for _, value in rows]))
                for name, rows in ordered.items()
            },
        )

    def draw(
        self, count: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw prompts and answers. [tokens]"""
        prompts, outputs = (self._draw(name, count, random) for name in FIELDS)
        return prompts, outputs

    def _draw(self, name: str, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        # outside the given percentiles the nearest given value holds: nothing is extrapolated
        logs = np.interp(
            100.0 * random.random(count), self.percentiles[name], np.log(self.tokens[name])
        )
        return np.maximum(1, np.rint(np.exp(logs))).astype(np.int64)


def read_lengths(path: Path, series: str | None = None) -> LengthQuantiles:
    """
    Read `field,percentile,value`, or a wide table `model,field,mean,p10,p50,...`.

    `series` chooses among the values of a column `service` or `model`.
    """
    try:
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    except OSError as error:
        raise ManifestError(f"cannot read lengths from {path}: {error.strerror}") from error
    column = next((one for one in SERIES_COLUMNS if rows and one in rows[0]), None)
    if column is not None:
        names = sorted({row[column] for row in rows})
        chosen = names[0] if series is None and len(names) == 1 else series
        if chosen not in names:
            raise ManifestError(
                f"{column} of {path.name} must be chosen as FILE:NAME from {', '.join(names)}, "
                f"got {series!r}"
            )
        rows = [row for row in rows if row[column] == chosen]
    table: dict[str, dict[float, float]] = {}
    for row in rows:
        name = row.get("field", "")
        points = table.setdefault(SYNONYMS.get(name, name), {})
        if "percentile" in row:
            points[float(row["percentile"])] = float(row["value"])
        else:
            points.update({float(k[1:]): float(v) for k, v in row.items() if k[1:].isdigit()})
    return LengthQuantiles.of(table)
