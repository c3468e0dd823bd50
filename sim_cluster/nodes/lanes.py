"""
The engine of one pod: its lanes, which run side by side, and what they count together.

A lane is one data-parallel rank of one pipeline micro-batch; most engines have a single one.
Requests go to the lane with the fewest; slots and KV cache are a lane's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.roofline import step_time
from sim_cluster.nodes import sglang
from sim_cluster.nodes.meters import MeteredClock, Meters
from sim_cluster.serving.replica import EngineLimits, ServingReplica

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sim_cluster.nodes.engine_spec import EngineSpec
    from sim_cluster.nodes.meters import Value
    from sim_cluster.serving.replica import Completion, Request


def limits_of(spec: EngineSpec) -> EngineLimits:
    """
    Say what one lane holds.

    Raises
    ------
    ModelError
        If the weights leave no room for a KV cache: the engine runs out of memory at its start.
    """
    return EngineLimits(
        max_sequences=spec.replica.max_sequences,
        step_token_budget=spec.replica.step_token_budget,
        kv_capacity_tokens=kv_capacity_tokens(spec.replica),
        block_tokens=spec.block_tokens,
    )


class Lanes:
    """All lanes of one engine."""

    def __init__(self, spec: EngineSpec) -> None:
        self._meters = Meters(sglang.BUCKETS if spec.dialect == "sglang" else None)
        limits = limits_of(spec)
        clock = MeteredClock(step_time(spec.replica), self._meters)
        self._lanes = [
            ServingReplica(
                clock,
                max_sequences=limits.max_sequences,
                step_token_budget=limits.step_token_budget,
                kv_capacity_tokens=limits.kv_capacity_tokens,
                block_tokens=limits.block_tokens,
                observer=self._meters,
            )
            for _ in range(spec.replica.lanes)
        ]
        self._capacity_tokens = limits.blocks * limits.block_tokens * spec.replica.lanes

    @property
    def in_flight(self) -> int:
        """Requests accepted and not finished."""
        return sum(lane.in_flight for lane in self._lanes)

    @property
    def running(self) -> int:
        """Requests in a batch."""
        return sum(lane.running for lane in self._lanes)

    @property
    def waiting(self) -> int:
        """Requests before a batch."""
        return sum(lane.waiting for lane in self._lanes)

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use. 0..1"""
        return sum(lane.kv_used_tokens for lane in self._lanes) / self._capacity_tokens

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight."""
        return all(lane.is_idle for lane in self._lanes)

    def submit(self, request: Request) -> None:
        """Hand a request to the lane with the fewest."""
        min(self._lanes, key=lambda lane: lane.in_flight).submit(request)

    def cancel(self, request_id: int) -> None:
        """Forget a request."""
        any(lane.cancel(request_id) for lane in self._lanes)

    def advance(self, until_s: float) -> Iterator[Completion]:
        """Serve until then and yield what finished."""
        for lane in self._lanes:
            for completion in lane.advance(until_s):
                self._meters.complete(completion)
                yield completion

    def values(self) -> Mapping[str, Value]:
        """Read every vLLM family that is not constantly 0."""
        counters = [lane.counters for lane in self._lanes]
        waiting = float(self.waiting)
        prompt_tokens = float(sum(one.prompt_tokens for one in counters))
        hits = float(sum(one.prefix_hits_tokens for one in counters))
        ended = self._meters.finished
        reasons = ("stop", "length", "abort", "error")
        return {
            **self._meters.histograms,
            "vllm:num_requests_running": float(self.running),
            "vllm:num_requests_waiting": waiting,
            "vllm:num_requests_waiting_by_reason": (waiting, 0.0),
            "vllm:engine_sleep_state": (1.0, 0.0, 0.0),
            "vllm:kv_cache_usage_perc": self.kv_usage,
            "vllm:prefix_cache_queries_total": float(
                sum(one.prefix_queries_tokens for one in counters)
            ),
            "vllm:prefix_cache_hits_total": hits,
            "vllm:num_preemptions_total": float(sum(one.preemptions for one in counters)),
            "vllm:prompt_tokens_total": prompt_tokens,
            "vllm:prompt_tokens_by_source_total": (max(prompt_tokens - hits, 0.0), hits, 0.0),
            "vllm:prompt_tokens_cached_total": hits,
            "vllm:prompt_tokens_cached_by_source_total": (hits, 0.0, 0.0, 0.0, 0.0),
            "vllm:generation_tokens_total": float(sum(one.generation_tokens for one in counters)),
            "vllm:request_success_total": (*(float(ended[reason]) for reason in reasons), 0.0),
        }


@lru_cache(maxsize=4096)
def idle_lanes(spec: EngineSpec) -> Lanes:
    """
    Return the lanes of an engine that has never served.

    All replicas of one kind share them until their first request: thousands of pods cost nothing.
    """
    return Lanes(spec)


@lru_cache(maxsize=4096)
def idle_values(spec: EngineSpec) -> Mapping[str, Value]:
    """Return what an engine that has never served shows."""
    return idle_lanes(spec).values()
