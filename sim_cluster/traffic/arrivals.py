"""Arrivals in open loop: when requests come does not depend on how they are served."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sim_cluster.traffic.shapes import RateTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sim_cluster.traffic.lengths import Lengths
    from sim_cluster.traffic.shapes import Shape

_BIN_S: Final = 1.0
_POINTS: Final = 4
"""Points at which the rate is looked at inside a bin."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request on its way in."""

    t_s: float
    """After the begin of the traffic. [s]"""
    prompt_tokens: int
    output_tokens: int
    cached_prompt_tokens: int = 0


def draw_arrivals(
    shape: Shape, lengths: Lengths, *, seed: int = 0, dispersion: float = 1.0
) -> Iterator[Arrival]:
    """
    Draw the arrivals of a load shape, second by second.

    `dispersion` is the variance over the mean of the number of arrivals in a second: 1 is Poisson,
    above it the rate itself fluctuates (negative binomial counts), below it is not possible.
    """
    if not dispersion >= 1:
        raise ValueError(f"dispersion must be >= 1, got {dispersion:g}")
    chance = np.random.default_rng(seed)
    begin_s = 0.0
    while begin_s < shape.duration_s:
        width_s = min(_BIN_S, shape.duration_s - begin_s)
        moments = begin_s + width_s * (np.arange(_POINTS) + 0.5) / _POINTS
        mean = float(np.mean([shape.rate_per_s(float(t)) for t in moments])) * width_s
        count = _count(mean, dispersion, chance)
        for t_s in np.sort(begin_s + width_s * chance.random(count)):
            prompt_tokens, output_tokens = lengths.draw(chance)
            yield Arrival(float(t_s), prompt_tokens, output_tokens)
        begin_s += width_s


def _count(mean: float, dispersion: float, chance: np.random.Generator) -> int:
    if mean <= 0:
        return 0
    if dispersion > 1:
        mean = float(chance.gamma(mean / (dispersion - 1), dispersion - 1))
    return int(chance.poisson(mean))


def read_trace(
    path: Path,
    *,
    start_s: float = 0.0,
    end_s: float = math.inf,
    faster: float = 1.0,
) -> Iterator[Arrival]:
    """
    Replay a request trace: CSV (`.gz` too) with `t_s,prompt_tokens,output_tokens`.

    A fourth column `cached_prefix_tokens_ideal` is taken as what the prefix cache holds.
    `faster` compresses time: the same requests arrive in less of it.
    """
    for row in _rows(path, {"t_s", "prompt_tokens", "output_tokens"}):
        t_s = float(row["t_s"])
        if t_s >= end_s:
            return
        if t_s >= start_s:
            yield Arrival(
                (t_s - start_s) / faster,
                max(1, int(row["prompt_tokens"])),
                max(1, int(row["output_tokens"])),
                int(row.get("cached_prefix_tokens_ideal") or 0),
            )


def read_rates(
    path: Path, *, start_s: float = 0.0, end_s: float = math.inf, faster: float = 1.0
) -> RateTable:
    """
    Read a rate trace: CSV (`.gz` too) with `t_s` and `rate_rps` or `rate_per_min`.

    The rates stay what they are when `faster` compresses time: a day passes in minutes, at the
    load of the day.
    """
    moments_s, rates_per_s = [], []
    for row in _rows(path, {"t_s"}):
        t_s = float(row["t_s"])
        if start_s <= t_s < end_s:
            moments_s.append((t_s - start_s) / faster)
            rates_per_s.append(_rate_per_s(row, path))
    if len(moments_s) < 2:
        raise ValueError(f"{path.name} must have two rates or more, got {len(moments_s)}")
    last_s = moments_s[-1] + (moments_s[-1] - moments_s[-2])
    return RateTable(tuple(moments_s), tuple(rates_per_s), last_s)


def _rate_per_s(row: Mapping[str, str], path: Path) -> float:
    if "rate_rps" in row:
        return float(row["rate_rps"])
    if "rate_per_min" in row:
        return float(row["rate_per_min"]) / 60
    raise ValueError(f"{path.name} must have rate_rps or rate_per_min, got {', '.join(row)}")


def _rows(path: Path, wanted: set[str]) -> Iterator[dict[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or ()
        if missing := wanted - set(columns):
            raise ValueError(
                f"{path.name} must have the columns {', '.join(sorted(missing))}, "
                f"got {', '.join(columns)}"
            )
        yield from reader
