"""A CSV file in columns, with errors that name the file, the line and the field."""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ModelError

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]

MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of text by name, and the line of the file that each row stands on."""

    name: str
    columns: dict[str, Sequence[str]]
    lines: Sequence[int]

    def text(self, column: str) -> Sequence[str]:
        """Return a column as it stands in the file."""
        if column not in self.columns:
            raise ModelError(
                f"{self.name}:1 header must have {column}, got {','.join(self.columns)}"
            )
        return self.columns[column]

    def where(self, rows: Sequence[bool]) -> "Table":
        """Return the rows that are marked."""
        kept = [index for index, wanted in enumerate(rows) if wanted]
        return Table(
            self.name,
            {name: [cells[index] for index in kept] for name, cells in self.columns.items()},
            [self.lines[index] for index in kept],
        )

    def numbers(self, column: str, *, least: float = -np.inf) -> Floats:
        """Return a column of finite numbers, none below `least`."""
        cells = self.text(column)
        try:
            values = np.array(cells, dtype=np.float64)
        except ValueError:
            values = np.array([_number(cell) for cell in cells])
        rule = f"a number >= {least:g}" if np.isfinite(least) else "a number"
        self._refuse(column, ~np.isfinite(values) | (values < least), rule)
        return values

    def counts(self, column: str, *, least: int) -> Counts:
        """Return a column of whole numbers, none below `least`."""
        values = self.numbers(column, least=least)
        wrong = (values != np.floor(values)) | (values > MOST_TOKENS)
        self._refuse(column, wrong, f"a whole number >= {least}")
        return values.astype(np.int32)

    def rising(self, column: str) -> Floats:
        """Return a column of times that never fall, from zero on."""
        values = self.numbers(column, least=0.0)
        falls = np.diff(values, prepend=0.0) < 0
        if falls.any():
            row = int(np.argmax(falls))
            self._refuse(column, falls, f">= the line before ({values[row - 1]:g})")
        return values

    def _refuse(self, column: str, wrong: NDArray[np.bool_], rule: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            cell = self.columns[column][row]
            raise ModelError(
                f"{self.name}:{self.lines[row]} {column} must be {rule}, got {cell or 'nothing'}"
            )


def read_table(path: Path | str) -> Table:
    """
    Read a CSV file with a header, gzipped if its name ends in `.gz`.

    Raises
    ------
    ModelError
        If it cannot be read, has no rows, or a row has another number of cells than the header.
    """
    place = Path(path)
    try:
        raw = place.read_bytes()
        data = gzip.decompress(raw) if place.suffix == ".gz" else raw
        rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        header = [name.strip() for name in next(rows, [])]
        numbered = [(rows.line_num, row) for row in rows if row]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"cannot read a trace from {place}: {error}") from error
    if not numbered:
        raise ModelError(f"{place.name} must have a header and at least one row, got nothing")
    for line, row in numbered:
        if len(row) != len(header):
            raise ModelError(
                f"{place.name}:{line} row must have {len(header)} cells, got {len(row)}"
            )
    cells = zip(*(row for _, row in numbered), strict=True)
    return Table(place.name, dict(zip(header, cells, strict=True)), [line for line, _ in numbered])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan
