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


def text(replicas: Iterable[LiveReplica]) -> str:
    """Write the answer; pods whose own `/metrics` would fail are left out of it."""
    read = [
        (_labels(one), one.values()) for one in replicas if one.scrape.fault is ScrapeFault.NONE
    ]
    return "\n".join(_lines(read)) + "\n"


def _labels(replica: LiveReplica) -> dict[str, str]:
    namespace, pod = replica.key
    return {
        "engine": "0",
        "model_name": replica.spec.served_name,
        "namespace": namespace,
        "pod": pod,
    }


def _lines(
    read: list[tuple[dict[str, str], Mapping[str, Value | tuple[float, ...]]]],
) -> Iterator[str]:
    for family in VLLM:
        if family.name in FAMILIES:
            yield head(family.name, family.kind, family.about).rstrip("\n")
            for labels, values in read:
                value = values[family.name]
                if isinstance(value, Histogram):
                    yield from _buckets(family.name, labels, value)
                elif isinstance(value, tuple):
                    for variant, one in zip(family.variants, value, strict=True):
                        yield f"{family.name}{braces({**labels, family.label: variant})} {one}"
                else:
                    yield f"{family.name}{braces(labels)} {number(value)}"


def _buckets(name: str, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    cumulative = histogram.cumulative()
    if cumulative[-1] == 0:
        return
    bounds = [*(number(bound) for bound in histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, cumulative, strict=True):
        yield f"{name}_bucket{braces({**labels, 'le': bound})} {count}.0"
    yield f"{name}_count{braces(labels)} {cumulative[-1]}.0"
    yield f"{name}_sum{braces(labels)} {number(histogram.sum)}"
