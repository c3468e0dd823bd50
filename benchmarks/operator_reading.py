"""What a running operator tells of itself, and what the kernel tells of its process."""

from __future__ import annotations

import asyncio
import os
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from sim_cluster.launch import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The operator at one moment."""

    at_s: float
    cpu_s: float
    memory_mib: float
    metrics: dict[str, dict[tuple[str, ...], float]]


async def read(here: Cluster) -> Reading:
    """Read the operator of a cluster as it is now."""
    if here.operator is None or here.operator_metrics_url is None:
        raise RuntimeError("the operator must run, got none")
    if here.operator.exit_code is not None:
        raise RuntimeError(f"the operator has ended: {here.operator.last_words()}")
    url = here.operator_metrics_url
    text = await asyncio.to_thread(_fetch, url)
    metrics: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            metrics.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return Reading(
        at_s=time.monotonic(),
        cpu_s=_cpu_s(here.operator.pid),
        memory_mib=_memory_mib(here.operator.pid),
        metrics=metrics,
    )


def between(first: Reading, last: Reading, name: str) -> float:
    """By how much a counter grew."""
    return sum(last.metrics[name].values()) - sum(first.metrics[name].values())


def percentile(first: Reading, last: Reading, name: str, share: float) -> float:
    """Read an upper bound of a percentile from the buckets that filled in between."""
    before = first.metrics[f"{name}_bucket"]
    filled = {
        float(labels[-1]): count - before.get(labels, 0.0)
        for labels, count in last.metrics[f"{name}_bucket"].items()
    }
    total = max(filled.values())
    return min((bound for bound, count in filled.items() if count >= share * total), default=0.0)


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 (loopback)
        return str(answer.read().decode())


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
