"""
The same engine under SGLang's metric names: other labels, other buckets, gauges where vLLM counts.

Names after facts collected from `sglang/srt/observability/metrics_collector.py`; the buckets of the
first token begin at 0.1 s, so that percentiles below it cannot be resolved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fleetline.model.kv_cache import kv_capacity_tokens
from sim_cluster.nodes.exposition import Exposition
from sim_cluster.nodes.families import Family

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.nodes.engine_spec import EngineSpec
    from sim_cluster.nodes.meters import Value

_WHOLE_S: Final = (*(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400),)
_GAPS_S: Final = (
    *(0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040),
    *(0.060, 0.080, 0.100, 0.200, 0.400, 0.600, 0.800, 1, 2, 4, 6, 8),
)
_TOKENS: Final = (
    *(100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000),
    *(12_500, 15_000, 17_500, 20_000, 22_500, 25_000, 27_500, 30_000, 35_000, 40_000, 60_000),
    *(80_000, 100_000, 200_000, 300_000, 400_000, 600_000, 800_000, 1_000_000, 1_100_000),
)

FAMILIES: Final = (
    Family("sglang:num_running_reqs", "gauge", "Requests in the batch."),
    Family("sglang:num_queue_reqs", "gauge", "Requests before the batch."),
    Family("sglang:token_usage", "gauge", "Share of the KV cache in use, 0 to 1."),
    Family("sglang:max_total_num_tokens", "gauge", "Tokens that the KV cache holds."),
    Family("sglang:cache_hit_rate", "gauge", "Share of prompt tokens found in the cache."),
    Family("sglang:num_requests_total", "counter", "Finished requests."),
    Family("sglang:prompt_tokens_total", "counter", "Prompt tokens processed."),
    Family("sglang:generation_tokens_total", "counter", "Output tokens."),
    Family(
        "sglang:cached_tokens_total",
        "counter",
        "Prompt tokens found in the cache, by where it is.",
        "cache_source",
        ("device", "host"),
    ),
    Family("sglang:num_retracted_reqs", "gauge", "Requests that lost their KV cache."),
    *(
        Family(f"sglang:{name}", "histogram", about, buckets=buckets)
        for name, about, buckets in (
            ("time_to_first_token_seconds", "Arrival to first token.", _WHOLE_S),
            ("inter_token_latency_seconds", "Gap between tokens.", _GAPS_S),
            ("e2e_request_latency_seconds", "Arrival to last token.", _WHOLE_S),
            ("queue_time_seconds", "Arrival to the batch.", _WHOLE_S),
            ("prompt_tokens_histogram", "Prompt tokens of a request.", _TOKENS),
            ("generation_tokens_histogram", "Output tokens of a request.", _TOKENS),
        )
    ),
)

_SAME: Final = {
    "sglang:num_running_reqs": "vllm:num_requests_running",
    "sglang:num_queue_reqs": "vllm:num_requests_waiting",
    "sglang:token_usage": "vllm:kv_cache_usage_perc",
    "sglang:prompt_tokens_total": "vllm:prompt_tokens_total",
    "sglang:generation_tokens_total": "vllm:generation_tokens_total",
    "sglang:num_retracted_reqs": "vllm:num_preemptions_total",
    "sglang:time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "sglang:inter_token_latency_seconds": "vllm:inter_token_latency_seconds",
    "sglang:e2e_request_latency_seconds": "vllm:e2e_request_latency_seconds",
    "sglang:queue_time_seconds": "vllm:request_queue_time_seconds",
    "sglang:prompt_tokens_histogram": "vllm:request_prompt_tokens",
    "sglang:generation_tokens_histogram": "vllm:request_generation_tokens",
}
"""SGLang's name of what vLLM counts too."""


BUCKETS: Final = {
    _SAME[family.name]: family.buckets for family in FAMILIES if family.kind == "histogram"
}
"""Buckets in which to collect what this engine shows, by vLLM's name."""


def text(values: Mapping[str, Value], spec: EngineSpec, *, created_s: float) -> str:
    """Write `/metrics` in SGLang's words."""
    own = {name: values[source] for name, source in _SAME.items()}
    queries, hits = (
        values["vllm:prefix_cache_queries_total"],
        values["vllm:prefix_cache_hits_total"],
    )
    own["sglang:cache_hit_rate"] = _ratio(hits, queries)
    own["sglang:max_total_num_tokens"] = float(int(kv_capacity_tokens(spec.replica)))
    own["sglang:cached_tokens_total"] = (hits if isinstance(hits, float) else 0.0, 0.0)
    ended = values["vllm:request_success_total"]
    own["sglang:num_requests_total"] = sum(ended) if isinstance(ended, tuple) else 0.0
    ranks = {"engine_type": "unified", "tp_rank": "0", "pp_rank": "0"}
    labels = {"model_name": spec.served_name, **ranks}
    return "\n".join(Exposition(FAMILIES, labels, created_s=created_s).lines(own)) + "\n"


def _ratio(part: Value, whole: Value) -> float:
    if isinstance(part, float) and isinstance(whole, float) and whole:
        return part / whole
    return 0.0
