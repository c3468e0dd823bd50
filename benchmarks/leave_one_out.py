"""
Constants of the step time fitted again without one model, or without one accelerator.

Factors on five pooled constants, the same for all accelerators, are fitted to the closed-loop rows
of all others by the mean absolute logarithmic error; the rows left out are then predicted.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fleetline.adapters.catalog import Catalog, CatalogAccelerator, load_catalog
from fleetline.entrypoints.predicting import predict_rows
from fleetline.model.hardware import Efficiency

Row = Mapping[str, str]

CONSTANTS: Final = ("bandwidth", "compute", "prefill", "layer_s", "sequence_s")
FITTED_ROWS: Final = 160
"""Rows of a fit: evenly taken from all that are not left out."""
EVALUATIONS: Final = 60
START: Final = 0.15
"""Where the search starts, off the shipped constants. [logarithm]"""
LEAST_ROWS: Final = 25
"""Rows below which a group is not worth a fit."""
WORST: Final = 2.0
"""Logarithmic error beyond which a row counts no more: a mislabelled one must not decide."""


def with_constants(factors: NDArray[np.float64]) -> Catalog:
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


def errors(rows: Sequence[Row], factors: NDArray[np.float64]) -> list[float]:
    """Absolute logarithmic errors of TPOT; rows without an answer are left out."""
    return [
        abs(math.log(float(row["pred_tpot_ms"]) / float(row["seen"])))
        for row in predict_rows(with_constants(factors), rows)
        if row["pred_tpot_ms"]
    ]


def fitted(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Fit factors, by Nelder and Mead."""
    some = rows[:: max(1, len(rows) // FITTED_ROWS)]

    def cost(factors: NDArray[np.float64]) -> float:
        return statistics.fmean(min(one, WORST) for one in errors(some, factors))

    start = np.full(len(CONSTANTS), START)
    found = minimize(cost, start, method="Nelder-Mead", options={"maxfev": EVALUATIONS})
    return np.asarray(found.x)


def left_out(rows: Sequence[Row], column: str) -> dict[str, float]:
    """Median error of each group's rows with constants fitted on the others, and of all. [%]"""
    found: dict[str, float] = {}
    everything: list[float] = []
    for value in sorted({row[column] for row in rows}):
        mine = [row for row in rows if row[column] == value]
        if len(mine) < LEAST_ROWS:
            continue
        missed = errors(mine, fitted([row for row in rows if row[column] != value]))
        missed = [100.0 * math.expm1(one) for one in missed]
        found[value] = statistics.median(missed)
        everything += missed
    return {"all": statistics.median(everything), **found}
