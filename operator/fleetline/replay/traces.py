"""
Traces read from CSV: requests one by one, or rates from which arrivals are drawn.

Request trace: `t_s,prompt_tokens,output_tokens[,cached_prefix_tokens_ideal]`.
Rate trace: `t_s,rate_rps` (or `rate_per_min`, or `minute,rate_rps_mean`); a row holds until the
next. A column `service` or `model` with several values makes several traces of one file.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ManifestError
from fleetline.replay.drawing import LengthQuantiles, draw_times_s
from sim_cluster.serving.arrivals import Arrivals

Floats = NDArray[np.float64]

SERIES_COLUMNS: Final = ("service", "model")
"""Columns whose values tell several traces of one file apart."""

RATE_COLUMNS: Final = {"rate_rps": 1.0, "rate_per_min": 1 / 60, "rate_rps_mean": 1.0}
"""Columns with a rate, and the factor to requests per second."""

SHIFT_S: Final = 150.0
"""Copies of a trace that scaling adds are shifted by up to this much: the shape of five minutes
stays, bursts of single users do not fall together. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """How a trace is cut, scaled and drawn."""

    scale: float = 1.0
    """Factor on the rate of arrivals."""
    dispersion: float = 1.0
    """Index of dispersion of counts inside a bin of a rate trace; 1 is Poisson."""
    lengths: LengthQuantiles | None = None
    """Token lengths for a rate trace; None takes `CHAT_LENGTHS`."""
    start_s: float = 0.0
    end_s: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Requests over a stretch of time that begins at zero."""

    name: str
    arrivals: Arrivals
    duration_s: float

    def rate_per_s(self, bin_s: float) -> Floats:
        """Arrival rate in bins. [1/s]"""
        edges = np.arange(0.0, self.duration_s + bin_s, bin_s)
        counts, _ = np.histogram(self.arrivals.t_s, edges)
        return counts / bin_s


def read_traces(path: Path, options: TraceOptions) -> tuple[Trace, ...]:
    """
    Read every trace of a file, cut, scaled and with arrivals drawn.

    Raises
    ------
    ManifestError
        If the columns are neither those of a request trace nor of a rate trace.
    """
    rows = _rows(path)
    columns = set(rows[0]) if rows else set()
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    if {"t_s", "prompt_tokens", "output_tokens"} <= columns:
        return (_request_trace(name, rows, options),)
    rate_column = next((column for column in RATE_COLUMNS if column in columns), None)
    if rate_column is None or not columns & {"t_s", "minute"}:
        raise ManifestError(
            f"columns of {path.name} must be t_s,prompt_tokens,output_tokens or t_s,rate_rps, "
            f"got {','.join(rows[0]) if rows else 'an empty file'}"
        )
    return tuple(
        _rate_trace(label, group, rate_column, options)
        for label, group in _series(name, rows).items()
    )


def is_trace(path: Path) -> bool:
    """Whether a file has the columns of a trace; other tables may lie beside traces."""
    with _open(path) as lines:
        columns = set(next(csv.reader(lines), []))
    has_time = bool(columns & {"t_s", "minute"})
    return has_time and (
        {"prompt_tokens", "output_tokens"} <= columns or bool(columns & set(RATE_COLUMNS))
    )


def _open(path: Path) -> io.TextIOBase:
    try:
        if path.suffix == ".gz":
            return io.TextIOWrapper(gzip.open(path, "rb"), "utf-8")
        return path.open(encoding="utf-8")
    except OSError as error:
        raise ManifestError(f"cannot read trace from {path}: {error.strerror}") from error


def _rows(path: Path) -> list[dict[str, str]]:
    with _open(path) as lines:
        return list(csv.DictReader(lines))


def _column(rows: Sequence[Mapping[str, str]], name: str) -> Floats:
    try:
        return np.array([float(row[name]) for row in rows])
    except (TypeError, ValueError) as error:
        raise ManifestError(f"column {name} must be numbers, got {error}") from error


def _series(name: str, rows: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    column = next((column for column in SERIES_COLUMNS if column in rows[0]), None)
    if column is None:
        return {name: rows}
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    if len(groups) == 1:
        return {name: rows}
    return {f"{name}:{value}": group for value, group in groups.items()}


def _request_trace(name: str, rows: list[dict[str, str]], options: TraceOptions) -> Trace:
    times = _column(rows, "t_s")
    columns = ["prompt_tokens", "output_tokens"]
    cached_name = "cached_prefix_tokens_ideal"
    lengths = np.stack([np.maximum(1, _column(rows, column)) for column in columns])
    has_cache = cached_name in rows[0]
    cached = _column(rows, cached_name) if has_cache else np.zeros_like(times)
    order = np.argsort(times, kind="stable")
    arrivals = Arrivals.of(times[order], lengths[0][order], lengths[1][order], cached[order])
    last_s = float(times.max())
    # the trace lasts as long as its last request plus one mean gap
    whole_s = last_s + last_s / max(1, times.size - 1)
    end_s = whole_s if options.end_s is None else min(options.end_s, whole_s)
    cut = arrivals.cut(options.start_s, end_s)
    duration_s = end_s - options.start_s
    return _checked(name, _scaled(cut, duration_s, options), duration_s)


def _scaled(arrivals: Arrivals, duration_s: float, options: TraceOptions) -> Arrivals:
    """
    Lay `scale` shifted copies of a trace over each other, the last one thinned at random.

    What a shift moves beyond an end comes in at the other, so that the load at the ends is kept.
    """
    if options.scale == 1 or not len(arrivals):
        return arrivals
    random = np.random.default_rng(options.seed)
    copies = math.ceil(options.scale)
    shifts_s = np.linspace(-SHIFT_S, SHIFT_S, copies) if copies > 1 else np.zeros(1)
    keeps = np.ones((copies, len(arrivals)), dtype=np.bool_)
    keeps[-1] = random.random(len(arrivals)) < options.scale - (copies - 1)
    index = np.concatenate([np.flatnonzero(one) for one in keeps])
    shift_s = np.repeat(shifts_s, keeps.sum(axis=1))
    times = (arrivals.t_s[index] + shift_s) % duration_s
    order = np.argsort(times, kind="stable")
    index = index[order]
    return Arrivals.of(
        times[order],
        arrivals.prompt_tokens[index],
        arrivals.output_tokens[index],
        arrivals.cached_prompt_tokens[index],
    )


def _rate_trace(
    name: str, rows: list[dict[str, str]], rate_column: str, options: TraceOptions
) -> Trace:
    from_minutes = "t_s" not in rows[0]
    times = 60.0 * _column(rows, "minute") if from_minutes else _column(rows, "t_s")
    rates = np.maximum(0.0, _column(rows, rate_column)) * RATE_COLUMNS[rate_column] * options.scale
    order = np.argsort(times, kind="stable")
    times, rates = times[order], rates[order]
    last_bin_s = float(np.median(np.diff(times))) if times.size > 1 else 60.0
    edges = np.append(times, times[-1] + last_bin_s)
    end_s = float(edges[-1]) if options.end_s is None else min(options.end_s, float(edges[-1]))
    # every series of a file has a stream of its own, the same on any machine
    random = np.random.default_rng([options.seed, zlib.crc32(name.encode())])
    edges = np.clip(edges, options.start_s, max(end_s, options.start_s))
    drawn = draw_times_s(edges - options.start_s, rates, options.dispersion, random)
    lengths = options.lengths or CHAT_LENGTHS
    prompts, outputs = lengths.draw(drawn.size, random)
    return _checked(name, Arrivals.of(drawn, prompts, outputs), end_s - options.start_s)


def _checked(name: str, arrivals: Arrivals, duration_s: float) -> Trace:
    if not len(arrivals) or not duration_s > 0:
        raise ManifestError(
            f"{name} must have at least one request between start and end, got none"
        )
    return Trace(name=name, arrivals=arrivals, duration_s=duration_s)


CHAT_LENGTHS: Final = LengthQuantiles.of(
    {
        "prompt_tokens": {10: 288, 30: 545, 50: 909, 70: 2098, 90: 3820, 99: 6641},
        "output_tokens": {10: 1, 30: 9, 50: 31, 70: 64, 90: 336, 99: 680},
    }
)
"""Lengths when none are given: Azure 2024 conversation, read off its published CDF (CC-BY 4.0)."""
