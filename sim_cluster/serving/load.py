"""
Load from files: request traces, rate traces and length distributions as CSV, also gzipped.

    requests   t_s,prompt_tokens,output_tokens[,cached_prefix_tokens_ideal]
    times      t_s  (lengths are drawn)
    rates      t_s | minute, rate_rps | rate_per_min | rate_rps_mean
    lengths    field,percentile,value     or     field,...,p10,p50,p90,...

Further columns are ignored. A column `service` or `model` names several series in one file.
Errors say `FILE:LINE field must be <rule>, got <value>`.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fleetline.errors import ModelError
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.lengths import Lengths, Quantiles
from sim_cluster.serving.rates import RateTrace
from sim_cluster.serving.table import Table, read_table

SERIES_COLUMNS = ("service", "model")
SECONDS_PER_MINUTE = 60.0
RATE_COLUMNS = {"rate_rps": 1.0, "rate_rps_mean": 1.0, "rate_per_min": 1.0 / SECONDS_PER_MINUTE}
"""Columns of rates, and what makes requests per second of them."""

COPY_SPREAD_S = 60.0
"""Copies of a request that a scale above 1 adds come within a minute of it. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of a trace to take, and how to fill in what it leaves open."""

    series: str | None = None
    """Which series of a file with several."""
    scale: float = 1.0
    """Factor on the number of requests."""
    start_s: float = 0.0
    end_s: float = math.inf
    lengths: Lengths | None = None
    """For rate traces and traces of times only."""
    dispersion: float = 1.0
    """Of arrivals drawn from rates."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse an empty selection."""
        if not 0 < self.scale < math.inf:
            raise ModelError(f"scale must be > 0, got {self.scale:g}")
        if not 0 <= self.start_s < self.end_s:
            raise ModelError(
                f"start_s must be >= 0 and < end_s ({self.end_s:g} s), got {self.start_s:g}"
            )


def series_of(path: Path | str) -> tuple[str, ...]:
    """Names of the series in a file, in order of appearance; empty if it is a single one."""
    table = read_table(path)
    column = _series_column(table)
    return tuple(dict.fromkeys(table.text(column))) if column else ()


def read_arrivals(path: Path | str, selection: Selection | None = None) -> Arrivals:
    """
    Read a trace of any kind and turn it into requests, the clock at zero at `start_s`.

    Raises
    ------
    ModelError
        If the file is not a trace, a row is wrong, or lengths are needed and missing.
    """
    chosen = selection or Selection()
    table = _one_series(read_table(path), chosen.series)
    if any(name in table.columns for name in RATE_COLUMNS):
        rates = _rates_of(table).cut(chosen.start_s, chosen.end_s).scaled(chosen.scale)
        return rates.draw(
            _needed(chosen.lengths, table), dispersion=chosen.dispersion, seed=chosen.seed
        )
    random = np.random.Generator(np.random.PCG64(chosen.seed))
    requests = _requests_of(table, chosen.lengths, random)
    return _scaled(requests.cut(chosen.start_s, chosen.end_s), chosen.scale, random)


def read_rates(path: Path | str, series: str | None = None) -> RateTrace:
    """Read a rate trace."""
    return _rates_of(_one_series(read_table(path), series))


def read_lengths(path: Path | str, series: str | None = None) -> Lengths:
    """Read length distributions of prompts (or inputs) and outputs."""
    table = _one_series(read_table(path), series)
    fields = table.text("field")
    return Lengths(
        prompt=_quantiles(table, [name in {"prompt_tokens", "input_tokens"} for name in fields]),
        output=_quantiles(table, [name == "output_tokens" for name in fields]),
    )


def _series_column(table: Table) -> str | None:
    return next((name for name in SERIES_COLUMNS if name in table.columns), None)


def _one_series(table: Table, series: str | None) -> Table:
    column = _series_column(table)
    if column is None:
        return table
    names = table.text(column)
    known = list(dict.fromkeys(names))
    if series is None and len(known) == 1:
        return table
    if series not in known:
        raise ModelError(f"{table.name} series must be one of {', '.join(known)}, got {series}")
    return table.where([name == series for name in names])


def _needed(lengths: Lengths | None, table: Table) -> Lengths:
    if lengths is None:
        raise ModelError(f"{table.name} has no token counts: lengths must be given, got none")
    return lengths


def _requests_of(table: Table, lengths: Lengths | None, random: np.random.Generator) -> Arrivals:
    times = table.rising("t_s")
    if "prompt_tokens" not in table.columns and "output_tokens" not in table.columns:
        drawn = _needed(lengths, table)
        return Arrivals.of(
            times, drawn.prompt.draw(random, times.size), drawn.output.draw(random, times.size)
        )
    cached = "cached_prefix_tokens_ideal"
    return Arrivals.of(
        times,
        table.counts("prompt_tokens", least=1),
        table.counts("output_tokens", least=1),
        table.counts(cached, least=0) if cached in table.columns else 0,
    )


def _rates_of(table: Table) -> RateTrace:
    column = next((name for name in RATE_COLUMNS if name in table.columns), None)
    if column is None:
        raise ModelError(
            f"{table.name}:1 header must have one of {', '.join(RATE_COLUMNS)}, "
            f"got {','.join(table.columns)}"
        )
    rates = table.numbers(column, least=0.0) * RATE_COLUMNS[column]
    if "minute" in table.columns and "t_s" not in table.columns:
        begins = table.rising("minute") * SECONDS_PER_MINUTE
    else:
        begins = table.rising("t_s")
    gaps = np.diff(begins)
    width = float(np.median(gaps)) if gaps.size else SECONDS_PER_MINUTE
    return _without_gaps(begins, rates, width)


def _without_gaps(
    begins: np.ndarray,
    rates: np.ndarray,
    width: float,
) -> RateTrace:
    """Let each rate hold for one bin; where bins are missing nothing arrives."""
    edges, values = [float(begins[0])], []
    following = [*begins[1:].tolist(), math.inf]
    for begin, rate, after in zip(begins.tolist(), rates.tolist(), following, strict=True):
        end = after if after <= 1.5 * width + begin else begin + width
        edges.append(end)
        values.append(rate)
        if end < after < math.inf:
            edges.append(after)
            values.append(0.0)
    return RateTrace.of(edges, values)


def _quantiles(table: Table, rows: list[bool]) -> Quantiles:
    if not any(rows):
        raise ModelError(
            f"{table.name} field must be prompt_tokens and output_tokens, "
            f"got {', '.join(dict.fromkeys(table.text('field')))}"
        )
    chosen = table.where(rows)
    if "percentile" in table.columns:
        return Quantiles.of(chosen.numbers("percentile", least=0.0), chosen.numbers("value"))
    wide = sorted(
        (name for name in table.columns if name[:1] == "p" and name[1:].isdigit()),
        key=lambda name: int(name[1:]),
    )
    values = [float(chosen.numbers(name)[0]) for name in wide]
    return Quantiles.of([int(name[1:]) for name in wide], values)


def _scaled(requests: Arrivals, scale: float, random: np.random.Generator) -> Arrivals:
    """Keep a share of the requests, or add copies that come within a minute."""
    if scale == 1:
        return requests
    copies = np.floor(scale + random.random(len(requests))).astype(np.int64)
    index = np.repeat(np.arange(len(requests)), copies)
    is_copy = np.diff(index, prepend=-1) == 0
    times = requests.t_s[index] + is_copy * random.random(index.size) * COPY_SPREAD_S
    order = np.argsort(times, kind="stable")
    index = index[order]
    return Arrivals.of(
        times[order],
        requests.prompt_tokens[index],
        requests.output_tokens[index],
        requests.cached_prompt_tokens[index],
    )
