"""Which metric names answer which question: `catalog/engine_metrics.yaml`, typed."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Any, Final

import yaml

from fleetline.model.objective import Metric


class Quantity(StrEnum):
    """What is asked about a fleet."""

    RUNNING = "running"
    WAITING = "waiting"
    KV_CACHE_UTILIZATION = "kvCacheUtilization"
    COMPLETIONS = "completions"
    PREEMPTIONS = "preemptions"
    PREFIX_HITS = "prefixHits"
    PREFIX_QUERIES = "prefixQueries"
    PROMPT_TOKENS = "promptTokens"
    OUTPUT_TOKENS = "outputTokens"
    PROMPT_TOKENS_TOTAL = "promptTokensTotal"
    OUTPUT_TOKENS_TOTAL = "outputTokensTotal"
    TIME_TO_FIRST_TOKEN = "timeToFirstToken"  # noqa: S105 - a name, not a secret
    INTER_TOKEN_LATENCY = "interTokenLatency"  # noqa: S105
    TIME_PER_OUTPUT_TOKEN = "timePerOutputToken"  # noqa: S105
    END_TO_END = "endToEnd"


LATENCIES: Final = {
    Metric.TIME_TO_FIRST_TOKEN: Quantity.TIME_TO_FIRST_TOKEN,
    Metric.TIME_PER_OUTPUT_TOKEN: Quantity.TIME_PER_OUTPUT_TOKEN,
    Metric.INTER_TOKEN_LATENCY: Quantity.INTER_TOKEN_LATENCY,
    Metric.END_TO_END: Quantity.END_TO_END,
}
"""What measures an objective."""


class Kind(StrEnum):
    """How a metric is read."""

    GAUGE = "gauge"
    RATIO = "ratio"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One name under which an engine may show a quantity."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A quantity, how it is read, and its names in order of preference."""

    quantity: Quantity
    kind: Kind
    candidates: tuple[Candidate, ...]

    def scraped_name(self, candidate: Candidate) -> str:
        """Name of a series that is there if the metric is: histograms show `_count`."""
        return f"{candidate.name}_count" if self.kind is Kind.HISTOGRAM else candidate.name


@functools.cache
def questions() -> Mapping[Quantity, Question]:
    """Read the packaged table once."""
    text = resources.files("fleetline.catalog").joinpath("engine_metrics.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return {
        Quantity(name): Question(
            quantity=Quantity(name),
            kind=Kind(entry["kind"]),
            candidates=tuple(_candidate(one) for one in entry["names"]),
        )
        for name, entry in loaded.items()
    }


def _candidate(entry: str | dict[str, Any]) -> Candidate:
    if isinstance(entry, str):
        return Candidate(name=entry)
    return Candidate(name=entry["name"], labels=entry["labels"])
