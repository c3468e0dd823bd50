"""What one engine counts about itself: the observer of a `ServingReplica`, by metric family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim_cluster.nodes.families import VLLM
from sim_cluster.nodes.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.serving.replica import Completion, Request, StepClock

Value = float | Histogram | tuple[float, ...]
"""Of one family: a tuple follows the family's variants."""
_HISTOGRAMS: Final = tuple(family for family in VLLM if family.kind == "histogram")


class Meters:
    """Histograms filled as tokens appear, and counts of how requests ended."""

    def __init__(self, buckets: Mapping[str, tuple[float, ...]] | None = None) -> None:
        """Collect in vLLM's buckets, but for families that `buckets` names."""
        own = buckets or {}
        self.histograms = {
            family.name: Histogram(own.get(family.name, family.buckets)) for family in _HISTOGRAMS
        }
        self.finished: dict[str, int] = {"stop": 0, "length": 0, "abort": 0, "error": 0}
        self._first_token = self.histograms["vllm:time_to_first_token_seconds"]
        self._token_gap = self.histograms["vllm:inter_token_latency_seconds"]
        self._queue_time = self.histograms["vllm:request_queue_time_seconds"]

    def admitted(self, request: Request, waiting_time_s: float) -> None:  # noqa: ARG002
        """Part of `Observer`: a request joined the batch."""
        self._queue_time.observe(waiting_time_s)

    def first_token(self, request: Request, time_to_first_token_s: float) -> None:  # noqa: ARG002
        """Part of `Observer`: a request has its first token."""
        self._first_token.observe(time_to_first_token_s)

    def token_gap(self, gap_s: float, sequences: int) -> None:
        """Part of `Observer`: so many sequences got their next token after this gap."""
        self._token_gap.observe(gap_s, sequences)

    def complete(self, completion: Completion, *, reason: str = "stop") -> None:
        """Count a request that has all its tokens."""
        request, seen = completion.request, self.histograms
        self.finished[reason] += 1
        computed = request.prompt_tokens - request.cached_prompt_tokens
        seen["vllm:request_prompt_tokens"].observe(request.prompt_tokens)
        seen["vllm:request_generation_tokens"].observe(request.output_tokens)
        seen["vllm:request_max_num_generation_tokens"].observe(request.output_tokens)
        seen["vllm:request_params_max_tokens"].observe(request.output_tokens)
        seen["vllm:request_params_n"].observe(1)
        seen["vllm:request_num_preemptions"].observe(completion.preemptions)
        seen["vllm:request_prefill_kv_computed_tokens"].observe(computed)
        begin_s, first_s, end_s = (
            completion.admitted_s,
            completion.first_token_s,
            completion.finished_s,
        )
        seen["vllm:e2e_request_latency_seconds"].observe(completion.residence_time_s)
        seen["vllm:request_inference_time_seconds"].observe(end_s - begin_s)
        seen["vllm:request_prefill_time_seconds"].observe(first_s - begin_s)
        seen["vllm:request_decode_time_seconds"].observe(end_s - first_s)
        if (per_token_s := completion.time_per_output_token_s) is not None:
            seen["vllm:request_time_per_output_token_seconds"].observe(per_token_s)


class MeteredClock:
    """A step clock that counts the tokens of each step on the way."""

    def __init__(self, step_time: StepClock, meters: Meters) -> None:
        self._step_time = step_time
        self._step_tokens = meters.histograms["vllm:iteration_tokens_total"]
        self.request_s = float(getattr(step_time, "request_s", 0.0))
        self.tokens_per_step = float(getattr(step_time, "tokens_per_step", 1.0))
        self.window_tokens = int(getattr(step_time, "window_tokens", 0))

    def step_s(
        self,
        *,
        sequences: float,
        context_tokens: float,
        prefill_tokens: float,
        prefill_pairs: float = 0.0,
        window_context_tokens: float | None = None,
    ) -> float:
        """Time of one step. [s]"""
        self._step_tokens.observe(sequences + prefill_tokens)
        return self._step_time.step_s(
            sequences=sequences,
            context_tokens=context_tokens,
            prefill_tokens=prefill_tokens,
            prefill_pairs=prefill_pairs,
            window_context_tokens=window_context_tokens,
        )
