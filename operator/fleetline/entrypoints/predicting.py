"""Rows in, the same rows with predictions out; a row that has no answer says why."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetline.adapters.catalog import Catalog
from fleetline.entrypoints.measured_rows import MILLI, Row, parse, parse_measured
from fleetline.errors import FleetlineError
from fleetline.model.fitting import Factors, fit
from fleetline.model.prediction import Case, Predictions, predict

COLUMNS: Final = (
    "pred_tpot_ms",
    "pred_itl_mean_ms",
    "pred_ttft_mean_ms",
    "pred_ttft_p95_ms",
    "pred_concurrency",
    "pred_output_tps",
    "pred_capacity_rps",
    "pred_limit",
)
"""What is added to each row."""

BATCH: Final = 2000
"""Rows answered together: enough to be fast, few enough to fit a small memory."""


def predict_rows(
    catalog: Catalog, rows: Sequence[Mapping[str, str]], measured: Sequence[Mapping[str, str]] = ()
) -> list[dict[str, str]]:
    """Answer every row, in order, with factors learned from measured rows if there are any."""
    lessons = [lesson for row in measured if (lesson := parse_measured(catalog, row))]
    factors = fit(lessons)
    answers: list[dict[str, str]] = []
    asked: dict[int, Row] = {}
    for index, row in enumerate(rows):
        answers.append({**row, **dict.fromkeys(COLUMNS, "")})
        try:
            asked[index] = parse(catalog, row)
        except FleetlineError as error:
            answers[index]["pred_limit"] = f"error: {error}"
    order = list(asked)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        found = predict([_calibrated(asked[index], factors) for index in batch])
        for place, index in enumerate(batch):
            answers[index].update(_cells(found, place, asked[index].deployments))
    return answers


def _calibrated(row: Row, factors: Factors) -> Case:
    learned = factors.calibration(row.case, row.deployment, row.shape)
    return replace(row.case, replica=replace(row.case.replica, calibration=learned))


def _cells(found: Predictions, place: int, deployments: float) -> dict[str, str]:
    numbers = {
        "pred_tpot_ms": found.time_per_output_token_s[place] / MILLI,
        "pred_itl_mean_ms": found.inter_token_latency_s[place] / MILLI,
        "pred_ttft_mean_ms": found.time_to_first_token_s[place] / MILLI,
        "pred_ttft_p95_ms": found.time_to_first_token_p95_s[place] / MILLI,
        "pred_concurrency": found.concurrency[place] * deployments,
        "pred_output_tps": found.token_rate_per_s[place] * deployments,
        "pred_capacity_rps": found.capacity_per_s[place] * deployments,
    }
    cells = {name: _printed(float(value)) for name, value in numbers.items()}
    return cells | {"pred_limit": found.limits[place]}


def _printed(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.6g}"
