"""`fleetline predict`: rows of measurements in, the same rows with predictions out."""

import csv
import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from fleetline.adapters.catalog import load_catalog
from fleetline.entrypoints.predicting import COLUMNS, predict_rows
from fleetline.errors import ManifestError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(run)


def run(
    rows: Annotated[Path, typer.Argument(help="CSV of deployments and loads; may end in .gz.")],
    *,
    calibrate: Annotated[
        Path | None, typer.Option(help="CSV of measured rows to learn factors from.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write; default: stdout.")] = None,
) -> None:
    """Predict latency, concurrency and throughput of each row; exit code 1 if one has no answer."""
    fields, asked = read_csv(rows)
    _, measured = read_csv(calibrate) if calibrate else ([], [])
    answered = predict_rows(load_catalog(), asked, measured)
    with opened(out) as file:
        kept = [name for name in fields if name not in COLUMNS]
        writer = csv.DictWriter(file, [*kept, *COLUMNS], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(answered)
    if any(row["pred_limit"].startswith("error:") for row in answered):
        raise typer.Exit(1)


def read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """
    Read a CSV file with a header, compressed or not.

    Raises
    ------
    ManifestError
        If it cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, restval="")
            found = [{name: cell or "" for name, cell in row.items() if name} for row in reader]
            return list(reader.fieldnames or []), found
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"cannot read rows from {path}: {error}") from None


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """Open a file for writing, or stdout if there is no path."""
    if path is None:
        yield sys.stdout
        return
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        file = opener(path, "wt", encoding="utf-8", newline="")
    except OSError as error:
        raise ManifestError(f"cannot write rows to {path}: {error}") from None
    with file:
        yield file
