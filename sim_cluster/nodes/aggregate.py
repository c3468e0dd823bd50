"""
The metrics of many pods in one answer, with the labels that a scrape of each pod would add.

Made for thousands of pods, to be scraped with `honor_labels: true`: families that the engine
counts all the time, and its histograms only of pods that have served something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim_cluster.nodes.exposition import braces, head, number
from sim_cluster.nodes.families import VLLM
from sim_cluster.nodes.faults import ScrapeFault
from sim_cluster.nodes.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sim_cluster.nodes.families import Family
    from sim_cluster.nodes.live_replica import LiveReplica
    from sim_cluster.nodes.meters import Value

FAMILIES: Final = frozenset(
    {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:prefix_cache_queries_total",
        "vllm:prefix_cache_hits_total",
        "vllm:num_preemptions_total",
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:request_success_total",
        "vllm:time_to_first_token_seconds",
        "vllm:inter_token_latency_seconds",
        "vllm:request_time_per_output_token_seconds",
        "vllm:e2e_request_latency_seconds",
        "vllm:request_queue_time_seconds",
        "vllm:request_prompt_tokens",
        "vllm:request_generation_tokens",
    }
)
"""What the answer holds: all that an autoscaler asks for."""


class Aggregate:
    """Writes the answer; lines of replicas that have never served are kept, as they stay."""

    def __init__(self) -> None:
        """Begin with no lines."""
        self._untouched: list[LiveReplica] = []
        self._lines: dict[str, bytes] = {}
        """By family."""

    def content(self, replicas: Iterable[LiveReplica]) -> bytes:
        """Write the answer; pods whose own `/metrics` would fail are left out of it."""
        untouched: list[LiveReplica] = []
        touched: list[LiveReplica] = []
        for one in replicas:
            if one.scrape.fault is ScrapeFault.NONE:
                (untouched if one.is_untouched else touched).append(one)
        if untouched != self._untouched:
            self._untouched = untouched
            self._lines = {name: _encoded(lines) for name, _, lines in _families(untouched)}
        pieces: list[bytes] = []
        for name, begin, lines in _families(touched):
            pieces += (begin, self._lines.get(name, b""), _encoded(lines))
        return b"".join(pieces)


def text(replicas: Iterable[LiveReplica]) -> str:
    """Write the answer for some replicas once."""
    return Aggregate().content(replicas).decode()


def _families(
    replicas: Iterable[LiveReplica],
) -> Iterator[tuple[str, bytes, Iterator[str]]]:
    """Name, comment and samples of each family."""
    read = [(_labels(one), one.values()) for one in replicas]
    for family in VLLM:
        if family.name in FAMILIES:
            begin = head(family.name, family.kind, family.about).encode()
            yield family.name, begin, _all_samples(family, read)


def _all_samples(family: Family, read: Iterable[tuple[str, Mapping[str, Value]]]) -> Iterator[str]:
    for labels, values in read:
        yield from _samples(family, labels, values[family.name])


def _encoded(lines: Iterable[str]) -> bytes:
    whole = "\n".join(lines)
    return f"{whole}\n".encode() if whole else b""


def _labels(replica: LiveReplica) -> str:
    namespace, pod = replica.key
    labels = {"engine": "0", "model_name": replica.spec.served_name}
    return braces({**labels, "namespace": namespace, "pod": pod}).removesuffix("}")


def _samples(family: Family, labels: str, value: Value) -> Iterator[str]:
    name = family.name
    if isinstance(value, Histogram):
        cumulative = value.cumulative()
        if cumulative[-1]:
            bounds = [*(number(bound) for bound in value.bounds), "+Inf"]
            for bound, count in zip(bounds, cumulative, strict=True):
                yield f'{name}_bucket{labels},le="{bound}"}} {count}.0'
            yield f"{name}_count{labels}}} {cumulative[-1]}.0"
            yield f"{name}_sum{labels}}} {number(value.sum)}"
    elif isinstance(value, tuple):
        for variant, one in zip(family.variants, value, strict=True):
            yield f'{name}{labels},{family.label}="{variant}"}} {one}'
    else:
        yield f"{name}{labels}}} {number(value)}"
