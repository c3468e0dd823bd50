"""Results for people and for scripts: one list of rows, printed as a table, JSON or CSV."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fleetline.entrypoints.options import Output

Row = Mapping[str, Any]


def show(value: object) -> str:
    """Print a number with four significant digits, and what is not known as a dash."""
    match value:
        case None:
            text = "-"
        case bool():
            text = "yes" if value else "no"
        case int():
            text = f"{value:,}"
        case float() if math.isinf(value):
            text = "unbounded"
        case float() if value.is_integer() or abs(value) >= 10_000:
            text = f"{value:,.0f}"
        case float():
            text = f"{value:.4g}"
        case _:
            text = str(value)
    return text


def print_rows(title: str, rows: Sequence[Row], output: Output) -> None:
    """Print rows that share their keys; the keys carry the units."""
    if output is Output.JSON:
        print_json(list(rows))
    elif output is Output.CSV:
        writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    else:
        table = Table(title=title, title_justify="left", header_style="bold")
        for number, name in enumerate(rows[0] if rows else ()):
            is_text = all(isinstance(row[name], str) for row in rows)
            table.add_column(name, justify="left" if number == 0 or is_text else "right")
        for row in rows:
            table.add_row(*(show(value) for value in row.values()))
        Console(width=None if sys.stdout.isatty() else 140).print(table)


def print_json(value: object) -> None:
    """Print strict JSON: what is unbounded or unknown becomes null."""
    sys.stdout.write(json.dumps(_finite(value), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
