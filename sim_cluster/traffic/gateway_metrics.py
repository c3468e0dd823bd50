"""
A gateway's own metrics, under the names of the llm-d router (its endpoint picker, EPP).

`llm_d_epp_request_total` counts arrivals, which no engine does. Like the real one it also keeps
the older twin `inference_objective_request_total`: a reader who adds the two counts twice.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sim_cluster.nodes.exposition import Exposition
from sim_cluster.nodes.families import FIRST_TOKEN_BUCKETS_S, REQUEST_BUCKETS_S, Family
from sim_cluster.nodes.histogram import Histogram

if TYPE_CHECKING:
    from sim_cluster.nodes.meters import Value
    from sim_cluster.traffic.truth import RequestRecord

_TOKENS: Final = tuple(float(2**n) for n in range(17))

REQUEST_FAMILIES: Final = (
    Family("llm_d_epp_request_total", "counter", "Requests that arrived."),
    Family("inference_objective_request_total", "counter", "The same under its older name."),
    Family("llm_d_epp_request_error_total", "counter", "Requests refused."),
    Family("llm_d_epp_request_running", "gauge", "Requests sent to a replica and not finished."),
    Family(
        "llm_d_epp_request_duration_seconds",
        "histogram",
        "Arrival at the gateway to last token.",
        buckets=REQUEST_BUCKETS_S,
    ),
    Family(
        "llm_d_epp_request_ttft_seconds",
        "histogram",
        "Arrival at the gateway to first token.",
        buckets=FIRST_TOKEN_BUCKETS_S,
    ),
    Family("llm_d_epp_request_input_tokens", "histogram", "Prompt tokens.", buckets=_TOKENS),
    Family("llm_d_epp_request_output_tokens", "histogram", "Output tokens.", buckets=_TOKENS),
    Family("llm_d_epp_flow_control_queue_size", "gauge", "Requests held at the gateway."),
)
POOL_FAMILIES: Final = (
    Family("llm_d_epp_average_queue_size", "gauge", "Requests waiting, a replica."),
    Family("llm_d_epp_average_running_requests", "gauge", "Requests in the batch, a replica."),
    Family("llm_d_epp_average_kv_cache_utilization", "gauge", "KV cache in use, 0 to 1."),
    Family("llm_d_epp_ready_endpoints", "gauge", "Replicas that take requests."),
)


class GatewayMetrics:
    """What one router counts."""

    def __init__(self, *, model_name: str, pool_name: str) -> None:
        self.arrivals = 0
        self.errors = 0
        self._histograms = {
            family.name: Histogram(family.buckets)
            for family in REQUEST_FAMILIES
            if family.kind == "histogram"
        }
        created_s = time.time()
        request = {"model_name": model_name, "target_model_name": model_name}
        self._requests = Exposition(
            REQUEST_FAMILIES, {**request, "fairness_id": "", "priority": "0"}, created_s=created_s
        )
        self._pool = Exposition(POOL_FAMILIES, {"name": pool_name}, created_s=created_s)

    def arrived(self, record: RequestRecord) -> None:
        """Count an arrival."""
        self.arrivals += 1
        self._histograms["llm_d_epp_request_input_tokens"].observe(record.prompt_tokens)

    def finished(self, record: RequestRecord) -> None:
        """Count a request that has its last token."""
        seen = self._histograms
        seen["llm_d_epp_request_duration_seconds"].observe(record.residence_time_s)
        seen["llm_d_epp_request_ttft_seconds"].observe(record.time_to_first_token_s)
        seen["llm_d_epp_request_output_tokens"].observe(record.output_tokens)

    def text(self, *, sent: int, held: int, pool: dict[str, float]) -> str:
        """Write `/metrics`; `pool` holds the values of the pool's families without prefix."""
        values: dict[str, Value] = {
            **self._histograms,
            "llm_d_epp_request_total": float(self.arrivals),
            "inference_objective_request_total": float(self.arrivals),
            "llm_d_epp_request_error_total": float(self.errors),
            "llm_d_epp_request_running": float(sent),
            "llm_d_epp_flow_control_queue_size": float(held),
        }
        pooled = {f"llm_d_epp_{name}": value for name, value in pool.items()}
        lines = [*self._requests.lines(values), *self._pool.lines(pooled)]
        return "\n".join(lines) + "\n"
