"""
The metric families of vLLM's `/metrics`: names, types, labels and buckets of release 0.32.

They are those of an exposition recorded from the real engine (tests/data/nodes/vllm_families.json,
which a test compares). Counters carry `_total` in their names, and every counter and histogram has
a `_created` twin, a gauge with the time at which it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]

TOKEN_BUCKETS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
STEP_BUCKETS: Final = tuple(float(2**n) for n in (0, *range(3, 15)))
SAMPLE_BUCKETS: Final = (1, 2, 5, 10, 20)
PREEMPTION_BUCKETS: Final = (1, 2, 3, 4, 5, 10, 20)
_LONG_TAIL_S: Final = (1, 2.5, 5, 7.5, 10, 20, 40, 80)
FIRST_TOKEN_BUCKETS_S: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(*_LONG_TAIL_S, 160, 640, 2560),
)
TOKEN_GAP_BUCKETS_S: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *_LONG_TAIL_S,
)
REQUEST_BUCKETS_S: Final = (
    *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60),
    *(120, 240, 480, 960, 1920, 7680),
)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family; `variants` are the values of the label that it has besides the usual."""

    name: str
    kind: Kind
    about: str
    label: str = ""
    variants: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    by_engine: bool = True
    """Whether its series carry the label `engine`."""

    @property
    def created_name(self) -> str:
        """Name of the twin that says since when; gauges have none."""
        return self.name.removesuffix("_total" if self.kind == "counter" else "") + "_created"


def _counter(
    name: str,
    about: str,
    label: str = "",
    variants: tuple[str, ...] = (),
    *,
    by_engine: bool = True,
) -> Family:
    return Family(name, "counter", about, label, variants, by_engine=by_engine)


def _gauge(name: str, about: str, label: str = "", variants: tuple[str, ...] = ()) -> Family:
    return Family(name, "gauge", about, label, variants)


def _histogram(name: str, about: str, buckets: tuple[float, ...]) -> Family:
    return Family(name, "histogram", about, buckets=buckets)


VLLM: Final = (
    _counter("vllm:estimated_flops_per_gpu_total", "Estimated operations; 0 unless enabled."),
    _counter("vllm:estimated_read_bytes_per_gpu_total", "Estimated reads; 0 unless enabled."),
    _counter("vllm:estimated_write_bytes_per_gpu_total", "Estimated writes; 0 unless enabled."),
    _gauge("vllm:num_requests_running", "Requests in the batch."),
    _gauge("vllm:num_requests_waiting", "Requests that wait for the batch."),
    _gauge(
        "vllm:num_requests_waiting_by_reason",
        "Requests that wait, by what they wait for.",
        "reason",
        ("capacity", "deferred"),
    ),
    _gauge(
        "vllm:engine_sleep_state",
        "Which state of sleep the engine is in.",
        "sleep_state",
        ("awake", "weights_offloaded", "discard_all"),
    ),
    _gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1."),
    _counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache."),
    _counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache."),
    _counter("vllm:external_prefix_cache_queries_total", "Tokens looked up in other instances."),
    _counter("vllm:external_prefix_cache_hits_total", "Tokens found in other instances."),
    _counter("vllm:mm_cache_queries_total", "Items looked up in the multi-modal cache."),
    _counter("vllm:mm_cache_hits_total", "Items found in the multi-modal cache."),
    _counter("vllm:num_preemptions_total", "Requests that lost their KV cache to others."),
    _counter("vllm:prompt_tokens_total", "Prompt tokens processed."),
    _counter(
        "vllm:prompt_tokens_by_source_total",
        "Prompt tokens, by where their KV cache came from.",
        "source",
        ("local_compute", "local_cache_hit", "external_kv_transfer"),
    ),
    _counter("vllm:prompt_tokens_cached_total", "Prompt tokens found in a cache."),
    _counter(
        "vllm:prompt_tokens_cached_by_source_total",
        "Prompt tokens found in a cache, by tier.",
        "source",
        ("device", "host", "p2p", "disk", "external_unspecified"),
    ),
    _counter("vllm:generation_tokens_total", "Output tokens."),
    _counter(
        "vllm:request_success_total",
        "Finished requests, by why they ended.",
        "finished_reason",
        ("stop", "length", "abort", "error", "repetition"),
    ),
    _counter(
        "vllm:admission_rejections_total",
        "Requests refused by a limit of the queue.",
        "reason",
        ("max_num_queued_reqs", "max_num_queued_tokens"),
        by_engine=False,
    ),
    _histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", TOKEN_BUCKETS),
    _histogram("vllm:request_generation_tokens", "Output tokens of a request.", TOKEN_BUCKETS),
    _histogram("vllm:iteration_tokens_total", "Tokens of a step.", STEP_BUCKETS),
    _histogram("vllm:request_max_num_generation_tokens", "Output tokens asked for.", TOKEN_BUCKETS),
    _histogram("vllm:request_params_n", "Answers asked for.", SAMPLE_BUCKETS),
    _histogram("vllm:request_params_max_tokens", "The request's max_tokens.", TOKEN_BUCKETS),
    _histogram(
        "vllm:time_to_first_token_seconds", "Arrival to first token.", FIRST_TOKEN_BUCKETS_S
    ),
    _histogram("vllm:inter_token_latency_seconds", "Gap between tokens.", TOKEN_GAP_BUCKETS_S),
    _histogram(
        "vllm:request_time_per_output_token_seconds",
        "Mean gap between the tokens of a request.",
        TOKEN_GAP_BUCKETS_S,
    ),
    _histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", REQUEST_BUCKETS_S),
    _histogram("vllm:request_queue_time_seconds", "Arrival to the batch.", REQUEST_BUCKETS_S),
    _histogram("vllm:request_inference_time_seconds", "Time in the batch.", REQUEST_BUCKETS_S),
    _histogram("vllm:request_prefill_time_seconds", "Batch to first token.", REQUEST_BUCKETS_S),
    _histogram("vllm:request_decode_time_seconds", "First to last token.", REQUEST_BUCKETS_S),
    _histogram("vllm:request_num_preemptions", "Preemptions of a request.", PREEMPTION_BUCKETS),
    _histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens computed.", TOKEN_BUCKETS),
)
"""Every family of the engine but `vllm:cache_config_info`, whose labels are its content."""
