"""A serving replica in simulated time: the engine of one pod, its clients and its `/metrics`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from sim_cluster.nodes import sglang
from sim_cluster.nodes.exposition import Exposition, braces, head, number
from sim_cluster.nodes.families import VLLM
from sim_cluster.nodes.faults import HEALTHY, ScrapeFault, ScrapeState
from sim_cluster.nodes.lanes import Lanes, idle_lanes, idle_values, limits_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sim_cluster.informer import Key
    from sim_cluster.nodes.engine_spec import EngineSpec
    from sim_cluster.nodes.meters import Value
    from sim_cluster.serving.replica import Completion, Request

_VALUE: Final = re.compile(r" [^ \n]+$", re.MULTILINE)


class Client(Protocol):
    """Who sent a request and waits for it."""

    def completed(self, completion: Completion) -> None:
        """Take the whole answer."""

    def lost(self, request: Request) -> None:
        """Give a request back: its replica has gone before the last token."""


class LiveReplica:
    """One engine. Time moves only by `advance`; requests arrive in between."""

    def __init__(self, key: Key, spec: EngineSpec, *, created_s: float) -> None:
        self.key = key
        self.spec = spec
        self.is_draining = False
        self.scrape = HEALTHY
        self._created_s = created_s
        self._clients: dict[int, tuple[Request, Client]] = {}
        self._lanes: Lanes | None = None
        self._exposition: Exposition | None = None
        self.limits = limits_of(spec)

    @property
    def in_flight(self) -> int:
        """Requests accepted and not finished."""
        return self._engine.in_flight

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return self._engine.running

    @property
    def waiting(self) -> int:
        """Requests before the batch."""
        return self._engine.waiting

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use. 0..1"""
        return self._engine.kv_usage

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight."""
        return self._engine.is_idle

    @property
    def is_untouched(self) -> bool:
        """Whether no request has ever come: its metrics stand still."""
        return self._lanes is None

    @property
    def _engine(self) -> Lanes:
        return self._lanes or idle_lanes(self.spec)

    def submit(self, request: Request, client: Client) -> None:
        """
        Accept a request.

        Raises
        ------
        ModelError
            If it could never fit into the KV cache.
        """
        if self._lanes is None:
            self._lanes = Lanes(self.spec)
        if not self.spec.prefix_caching:
            request = replace(request, cached_prompt_tokens=0)
        self._lanes.submit(request)
        self._clients[request.id] = (request, client)

    def advance(self, until_s: float) -> None:
        """Serve until then and tell the clients what finished."""
        if self._lanes is not None:
            for completion in self._lanes.advance(until_s):
                _, client = self._clients.pop(completion.request.id)
                client.completed(completion)

    def lose(self) -> None:
        """Die: whatever is in flight goes back to its clients unfinished."""
        abandoned, self._clients = self._clients, {}
        for request, client in abandoned.values():
            self._engine.cancel(request.id)
            client.lost(request)

    def begin_fault(self, fault: ScrapeFault, families: Iterable[str] = ()) -> None:
        """Let `/metrics` misbehave from now on; `ScrapeFault.NONE` heals it."""
        self.scrape = HEALTHY
        text = self.metrics_text() if fault is ScrapeFault.FROZEN else ""
        self.scrape = ScrapeState(fault, frozenset(families), text)

    def metrics_text(self) -> str:
        """Write `/metrics` as the engine would, or as its fault has it."""
        state = self.scrape
        if state.fault is ScrapeFault.FROZEN:
            return state.frozen_text
        if self.spec.dialect == "sglang":
            text = sglang.text(self.values(), self.spec, created_s=self._created_s)
        else:
            text = self._vllm_text(state.families)
        if state.fault is ScrapeFault.NAN:
            lines = text.splitlines(keepends=True)
            return "".join(s if s[0] == "#" else _VALUE.sub(" NaN", s, count=1) for s in lines)
        return text

    def _vllm_text(self, without: Collection[str]) -> str:
        if self._exposition is None:
            labels = {"model_name": self.spec.served_name, "engine": "0"}
            self._exposition = Exposition(VLLM, labels, created_s=self._created_s)
        values = self.values()
        lines = [*self._exposition.lines(values, without=without)]
        if "vllm:cache_config_info" not in without:
            lines.append(self._cache_config())
        begun = head("process_start_time_seconds", "gauge", "Start of the process.")
        lines.append(f"{begun}process_start_time_seconds {number(self._created_s)}")
        answered = head("http_requests_total", "counter", "Requests by handler.")
        handler = braces({"handler": "/v1/completions", "method": "POST", "status": "2xx"})
        ended = values["vllm:request_success_total"]
        count = number(ended[0] if isinstance(ended, tuple) else 0.0)
        lines.append(f"{answered}http_requests_total{handler} {count}\n")
        return "\n".join(lines)

    def _cache_config(self) -> str:
        limits, replica = self.limits, self.spec.replica
        blocks = limits.blocks * replica.lanes
        capacity_tokens = blocks * limits.block_tokens
        labels = {
            "engine": "0",
            "block_size": str(limits.block_tokens),
            "cache_dtype": "auto",
            "enable_prefix_caching": str(self.spec.prefix_caching),
            "gpu_memory_utilization": f"{replica.memory_utilization:g}",
            "kv_cache_size_tokens": str(capacity_tokens),
            "kv_cache_max_concurrency": number(
                capacity_tokens / replica.architecture.max_context_tokens
            ),
            "num_gpu_blocks": str(blocks),
        }
        name = "vllm:cache_config_info"
        return (
            f"{head(name, 'gauge', 'Size of the KV cache, in labels.')}{name}{braces(labels)} 1.0"
        )

    def values(self) -> Mapping[str, Value]:
        """Read every vLLM family that is not constantly 0."""
        return idle_values(self.spec) if self._lanes is None else self._lanes.values()
