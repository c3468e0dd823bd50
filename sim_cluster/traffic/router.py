"""
A gateway before the pods of a Service: balances requests in open loop, and knows the truth.

Requests wait at the gateway while no replica is ready, and are sent again, from the start, when
the replica that had them vanishes. Nobody is ever turned away because the fleet is busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from fleetline.errors import ModelError
from sim_cluster.serving.replica import Request
from sim_cluster.traffic.balance import balance_named
from sim_cluster.traffic.gateway_metrics import GatewayMetrics
from sim_cluster.traffic.truth import RequestRecord, Sample, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sim_cluster.informer import Key
    from sim_cluster.nodes.live_replica import LiveReplica
    from sim_cluster.nodes.pool import ReplicaPool
    from sim_cluster.serving.replica import Completion
    from sim_cluster.traffic.arrivals import Arrival

SAMPLE_S: Final = 1.0
_POLL_S: Final = 0.05


class ReadyPods(Protocol):
    """Who knows which pods take requests."""

    @property
    def ready(self) -> tuple[Key, ...]:
        """Those pods, in a stable order."""
        ...


class Router:
    """One gateway; time reaches it through the pool's `dispatch`."""

    def __init__(
        self,
        key: Key,
        pool: ReplicaPool,
        *,
        model_name: str,
        endpoints: ReadyPods,
        balance: str = "least-loaded",
        seed: int = 0,
    ) -> None:
        self.key = key
        self.endpoints = endpoints
        self.truth = Truth()
        self.metrics = GatewayMetrics(model_name=model_name, pool_name=key[1])
        self._pool = pool
        self._balance = balance_named(balance, seed=seed)
        self._coming: Iterator[Arrival] = iter(())
        self._next: Arrival | None = None
        self._begin_s = 0.0
        self._sent: dict[int, RequestRecord] = {}
        self._held: deque[RequestRecord] = deque()
        self._sampled_s = -SAMPLE_S

    @property
    def in_flight(self) -> int:
        """Requests that have arrived and are not finished."""
        return len(self._sent) + len(self._held)

    @property
    def held(self) -> int:
        """Requests at the gateway for want of a ready replica."""
        return len(self._held)

    @property
    def is_sending(self) -> bool:
        """Whether more requests are to come."""
        return self._next is not None

    @property
    def t_s(self) -> float:
        """Time since the first traffic began. [simulated s]"""
        return self._pool.clock_s - self.truth.origin_s

    def begin(self, arrivals: Iterable[Arrival]) -> None:
        """Let requests arrive from now on, at their times; earlier traffic still to come is cut."""
        if not self.truth.records:
            self.truth.origin_s = self._pool.clock_s
        self._begin_s = self._pool.clock_s
        self._coming = iter(arrivals)
        self._next = next(self._coming, None)

    def stop(self) -> None:
        """Let no more requests arrive."""
        self._coming, self._next = iter(()), None

    async def replay(self, arrivals: Iterable[Arrival]) -> None:
        """Let requests arrive from now on, and return after the last arrival."""
        self.begin(arrivals)
        await self._until(lambda: not self.is_sending)

    async def drain(self) -> None:
        """Return when nothing is in flight any more."""
        await self._until(lambda: not (self.in_flight or self.is_sending))

    def dispatch(self, until_s: float) -> None:
        """Submit every request that arrives until then."""
        replicas = self._ready()
        if replicas and self._held:
            held, self._held = self._held, deque()
            for record in held:
                self._send(record, self._pool.clock_s, replicas)
        while self._next is not None and self._begin_s + self._next.t_s <= until_s:
            arrival, self._next = self._next, next(self._coming, None)
            self._receive(arrival, replicas)
        if until_s - self._sampled_s >= SAMPLE_S:
            self._sampled_s = until_s
            self.truth.samples.append(self._sample(until_s))

    def completed(self, completion: Completion) -> None:
        """Part of `Client`: every token of a request has arrived."""
        record = self._sent.pop(completion.request.id)
        record.first_token_s = completion.first_token_s
        record.finished_s = completion.finished_s
        self.metrics.finished(record)

    def lost(self, request: Request) -> None:
        """Part of `Client`: the replica has gone; try another."""
        record = self._sent.pop(request.id)
        record.reroutes += 1
        self._send(record, self._pool.clock_s, self._ready())

    def metrics_text(self) -> str:
        """Write the gateway's own `/metrics`."""
        replicas = self._ready()
        many = max(len(replicas), 1)
        pool = {
            "average_queue_size": sum(one.waiting for one in replicas) / many,
            "average_running_requests": sum(one.running for one in replicas) / many,
            "average_kv_cache_utilization": sum(one.kv_usage for one in replicas) / many,
            "ready_endpoints": float(len(replicas)),
        }
        return self.metrics.text(sent=len(self._sent), held=len(self._held), pool=pool)

    @staticmethod
    async def _until(condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - the pool's ticks are what it waits for
            await asyncio.sleep(_POLL_S)

    def _receive(self, arrival: Arrival, replicas: list[LiveReplica]) -> None:
        arrival_s = self._begin_s + arrival.t_s
        record = RequestRecord(
            arrival_s,
            arrival.prompt_tokens,
            arrival.output_tokens,
            min(arrival.cached_prompt_tokens, arrival.prompt_tokens),
        )
        self.truth.records.append(record)
        self.metrics.arrived(record)
        self._send(record, arrival_s, replicas)

    def _send(self, record: RequestRecord, at_s: float, replicas: list[LiveReplica]) -> None:
        if not replicas:
            self._held.append(record)
            return
        replica = self._balance.choose(replicas)
        request = Request(
            id=next(self._pool.request_ids),
            arrival_s=max(at_s, self._pool.clock_s),
            prompt_tokens=record.prompt_tokens,
            output_tokens=record.output_tokens,
            cached_prompt_tokens=record.cached_prompt_tokens,
        )
        try:
            self._pool.submit(replica, request, self)
        except ModelError:  # larger than the whole KV cache: the engine answers 400
            record.refused = True
            self.metrics.errors += 1
            return
        record.replica = replica.key[1]
        self._sent[request.id] = record

    def _ready(self) -> list[LiveReplica]:
        known = self._pool.replicas
        ready = (known.get(key) for key in self.endpoints.ready)
        return [one for one in ready if one is not None and not one.is_draining]

    def _sample(self, at_s: float) -> Sample:
        replicas = self._ready()
        many = max(len(replicas), 1)
        return Sample(
            t_s=at_s - self.truth.origin_s,
            arrivals=self.truth.arrivals,
            in_flight=self.in_flight,
            held=self.held,
            running=sum(one.running for one in replicas),
            waiting=sum(one.waiting for one in replicas),
            ready_replicas=len(replicas),
            kv_usage=sum(one.kv_usage for one in replicas) / many,
        )
