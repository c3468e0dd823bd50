"""Measured rows with predictions beside them, and tables of how far the two are apart."""

import csv
import gzip
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fleetline.adapters.catalog import load_catalog
from fleetline.entrypoints.predicting import predict_rows

Row = dict[str, str]
Pair = tuple[str, str]


def read(path: Path) -> list[Row]:
    """Rows of a CSV file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def predicted(rows: Sequence[Row], measured: Sequence[Row] = ()) -> list[Row]:
    """The same rows with predictions."""
    return predict_rows(load_catalog(), rows, measured)


def error(row: Row, pair: Pair) -> float | None:
    """Absolute percentage error of one row; None if it was not measured or not answered."""
    try:
        asked, seen = float(row[pair[0]]), float(row[pair[1]])
    except (KeyError, ValueError):
        return None
    if not seen > 0:
        return None
    return 100.0 * abs(asked / seen - 1.0)


def summary(rows: Iterable[Row], pair: Pair) -> tuple[float, float, int]:
    """Median, 90th percentile and number of the errors of a column."""
    errors = sorted(found for row in rows if (found := error(row, pair)) is not None)
    if not errors:
        return math.nan, math.nan, 0
    return (
        statistics.median(errors),
        errors[min(len(errors) - 1, int(0.9 * len(errors)))],
        len(errors),
    )


def cell(rows: Iterable[Row], pair: Pair) -> str:
    """One cell of a table: `5.1 % (p90 12 %, n 120)`."""
    median, tail, count = summary(rows, pair)
    return "" if not count else f"{median:.1f} % (p90 {tail:.0f} %, n {count})"


def by(column: str, rows: Sequence[Row], pairs: dict[str, Pair]) -> list[str]:
    """A table by one column."""
    lines = [f"| {column} | " + " | ".join(pairs) + " |", "| --- |" + " --- |" * len(pairs)]
    for value in sorted({row[column] for row in rows}):
        chosen = [row for row in rows if row[column] == value]
        lines.append(f"| {value} | " + " | ".join(cell(chosen, p) for p in pairs.values()) + " |")
    return [*lines, ""]


def worst(
    rows: Sequence[Row], pair: Pair, group: Callable[[Row], tuple[str, ...]], count: int = 5
) -> list[str]:
    """The groups with the largest median error, named."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    medians = [(summary(some, pair)[0], name) for name, some in groups.items()]
    named = sorted((one for one in medians if not math.isnan(one[0])), reverse=True)[:count]
    return [
        "Worst: "
        + "; ".join(
            f"{' '.join(part for part in name if part)} {value:.0f} %" for value, name in named
        ),
        "",
    ]
