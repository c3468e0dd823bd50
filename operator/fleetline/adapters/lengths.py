"""
Token lengths from a file: percentiles, or the requests of a trace.

Percentiles: `field,percentile,value` with fields `prompt_tokens` and `output_tokens` (also
`input_tokens`), which are taken as independent. Trace: `prompt_tokens,output_tokens` per request.
"""

import csv
import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ManifestError
from fleetline.model.workload import TokenLengths

NODES: Final = 12
"""Quantiles per field; their product makes 144 kinds of requests."""
MOST_POINTS: Final = 256
"""Requests of a trace are thinned to this many kinds, evenly over the prompt lengths."""

PROMPT_FIELDS: Final = ("prompt_tokens", "input_tokens")
OUTPUT_FIELDS: Final = ("output_tokens",)


def read_lengths(path: Path) -> TokenLengths:
    """
    Read a length distribution.

    Raises
    ------
    ManifestError
        If the file cannot be read, or a row is not what its header promises.
    """
    rows = _rows(path)
    if not rows:
        raise ManifestError(f"{path} must have at least one row, got none")
    if {"field", "percentile", "value"} <= set(rows[0]):
        return _of_percentiles(path, rows)
    if {"prompt_tokens", "output_tokens"} <= set(rows[0]):
        prompts = _column(path, rows, "prompt_tokens")
        outputs = _column(path, rows, "output_tokens")
        return thinned(prompts, outputs)
    raise ManifestError(
        f"{path} must have columns field,percentile,value or prompt_tokens,output_tokens, "
        f"got {','.join(rows[0])}"
    )


def of_quantiles(prompt: Mapping[float, float], output: Mapping[float, float]) -> TokenLengths:
    """Joint distribution of two independent fields, each given as percentile -> tokens."""
    prompts, outputs = _quadrature(prompt), _quadrature(output)
    return TokenLengths.of(np.repeat(prompts, NODES), np.tile(outputs, NODES))


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        return list(csv.DictReader(text.decode("utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot read lengths from {path}: {error}") from error


def _column(path: Path, rows: Iterable[Mapping[str, str]], name: str) -> NDArray[np.float64]:
    values = []
    for line, row in enumerate(rows, start=2):
        try:
            values.append(max(1.0, float(row[name])))
        except (TypeError, ValueError) as error:
            raise ManifestError(
                f"{path}:{line} {name} must be a number, got {row[name]!r}"
            ) from error
    return np.array(values)


def thinned(prompts: NDArray[np.float64], outputs: NDArray[np.float64]) -> TokenLengths:
    """Requests of a trace as at most `MOST_POINTS` kinds, evenly over their order of length."""
    order = np.lexsort((outputs, prompts))
    if order.size > MOST_POINTS:
        middles = (np.arange(MOST_POINTS) + 0.5) / MOST_POINTS * order.size
        order = order[middles.astype(int)]
    return TokenLengths.of(prompts[order], outputs[order])


def _of_percentiles(path: Path, rows: Iterable[Mapping[str, str]]) -> TokenLengths:
    found: dict[str, dict[float, float]] = {}
    for line, row in enumerate(rows, start=2):
        try:
            percentile, value = float(row["percentile"]), float(row["value"])
        except ValueError as error:
            raise ManifestError(
                f"{path}:{line} percentile and value must be numbers, "
                f"got {row['percentile']!r} and {row['value']!r}"
            ) from error
        if not 0 <= percentile <= 100:
            raise ManifestError(f"{path}:{line} percentile must be 0 to 100, got {percentile:g}")
        found.setdefault(row["field"], {})[percentile] = value
    prompt = next((found[name] for name in PROMPT_FIELDS if name in found), None)
    output = next((found[name] for name in OUTPUT_FIELDS if name in found), None)
    if prompt is None or output is None:
        raise ManifestError(
            f"{path} must have the fields prompt_tokens and output_tokens, got {sorted(found)}"
        )
    return of_quantiles(prompt, output)


def _quadrature(percentiles: Mapping[float, float]) -> NDArray[np.float64]:
    """Lengths at evenly spaced quantiles, log-linear between the given percentiles. [tokens]"""
    at = np.array(sorted(percentiles)) / 100.0
    tokens = np.log(np.maximum(1.0, [percentiles[key] for key in sorted(percentiles)]))
    middles = (np.arange(NODES) + 0.5) / NODES
    return np.asarray(np.exp(np.interp(middles, at, np.maximum.accumulate(tokens))))
