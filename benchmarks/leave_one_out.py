"""
Constants of the step time fitted again without one model, or without one accelerator.

Factors on five pooled constants, the same for all accelerators, are fitted to the closed-loop rows
of all others by the mean absolute logarithmic error; the rows left out are then predicted. The fit
is of the model made straight at the best factors for all rows, by reweighted least squares.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.adapters.catalog import Catalog, CatalogAccelerator, load_catalog
from fleetline.entrypoints.predicting import predict_rows
from fleetline.model.hardware import Efficiency

Row = Mapping[str, str]
Floats = NDArray[np.float64]

CONSTANTS: Final = ("bandwidth", "compute", "prefill", "layer_s", "sequence_s")
SMALL: Final = 0.05
"""Change of a constant from which the model's slope is taken. [logarithm]"""
ROUNDS: Final = 40
"""Of reweighting: the error of a row counts by its size, not by its square."""
SURE: Final = 0.02
"""Error below which a row pulls no less. [logarithm]"""
LEAST_ROWS: Final = 25
"""Rows below which a group is not worth a fit."""
WORST: Final = 2.0
"""Logarithmic error beyond which a row counts no more: a mislabelled one must not decide."""


def with_constants(factors: Floats) -> Catalog:
    """Return the catalogue in which every accelerator has pooled constants times factors."""
    pooled = Efficiency()
    scaled = {
        name: getattr(pooled, name) * math.exp(factor)
        for name, factor in zip(CONSTANTS, factors, strict=True)
    }
    shares = ("bandwidth", "compute", "prefill")
    efficiency = replace(
        pooled,
        **{name: min(1.0, value) if name in shares else value for name, value in scaled.items()},
    )
    catalog = load_catalog()

    def changed(entry: CatalogAccelerator) -> CatalogAccelerator:
        if entry.accelerator is None:
            return entry
        return replace(entry, accelerator=replace(entry.accelerator, efficiency=efficiency))

    return replace(
        catalog, accelerators={key: changed(one) for key, one in catalog.accelerators.items()}
    )


def deviations(rows: Sequence[Row], factors: Floats) -> Floats:
    """Logarithm of predicted over measured TPOT; not a number for rows without an answer."""
    answers = predict_rows(with_constants(factors), rows)
    ratios = [float(row["pred_tpot_ms"] or "nan") / float(row["seen"]) for row in answers]
    return np.log(ratios)


def slopes(rows: Sequence[Row], factors: Floats) -> tuple[Floats, Floats]:
    """Deviations at the factors, and their derivatives; shapes (rows,) and (rows, constants)."""
    here = deviations(rows, factors)
    moved = [deviations(rows, factors + SMALL * row) for row in np.eye(len(CONSTANTS))]
    return here, np.stack([(one - here) / SMALL for one in moved], axis=-1)


def fitted(here: Floats, slope: Floats) -> Floats:
    """Change of factors with the least mean absolute deviation."""
    change = np.zeros(len(CONSTANTS))
    counts = np.isfinite(here) & (np.abs(here) < WORST)
    here, slope = here[counts], slope[counts]
    for _ in range(ROUNDS):
        weight = 1.0 / np.maximum(np.abs(here + slope @ change), SURE)
        normal = slope.T @ (weight[:, np.newaxis] * slope) + np.eye(len(CONSTANTS))
        change = -np.linalg.solve(normal, slope.T @ (weight * here))
    return np.asarray(change)


def left_out(rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, float]]:
    """By column: median error of each group's rows with constants of the others, and of all. [%]"""
    start = np.zeros(len(CONSTANTS))
    start = start + fitted(*slopes(rows, start))
    here, slope = slopes(rows, start)
    return [_left_out(rows, column, (start, here, slope)) for column in columns]


def _left_out(
    rows: Sequence[Row], column: str, straight: tuple[Floats, Floats, Floats]
) -> dict[str, float]:
    start, here, slope = straight
    values = np.array([row[column] for row in rows])
    found: dict[str, float] = {}
    everything: list[float] = []
    for value in sorted(set(values)):
        mine = values == value
        if mine.sum() < LEAST_ROWS:
            continue
        factors = start + fitted(here[~mine], slope[~mine])
        missed = deviations([row for row, one in zip(rows, mine, strict=True) if one], factors)
        missed_percent = 100.0 * np.abs(np.expm1(missed[np.isfinite(missed)]))
        found[str(value)] = float(np.median(missed_percent))
        everything += list(missed_percent)
    return {"all": float(np.median(everything)), **found}
