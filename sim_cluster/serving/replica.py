"""
One serving replica, stepped iteration by iteration: the reference that reads like the algorithm.

Continuous batching as vLLM's v1 scheduler does it. Each step has a budget of tokens. Running
requests come first: one token for each that decodes, then the next chunk of the prompt that is
only partly computed. What is left of the budget admits waiting requests, first come, first
served, while a slot is free and the whole prompt fits into the KV cache. When a decoding
sequence needs a block and none is free, the request admitted last is preempted: it loses its
cache, goes to the head of the queue and computes prompt and answer again.

At most one prompt is partly computed at any time: a chunk that ends inside a prompt has used up
the budget. Blocks of a prompt are taken at admission, those of the answer as it grows. A cached
prefix occupies blocks like any other part of the prompt; a preempted request finds it again.
"""

import math

from fleetline.errors import ModelError
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.request import Completion, Observer, Request
from sim_cluster.serving.scheduler import ROUNDING, Scheduler, Step
from sim_cluster.serving.sequence import Counters, Sequence, StepClock

__all__ = ["Completion", "EngineLimits", "Observer", "Request", "ServingReplica", "StepClock"]


class ServingReplica:
    """
    A replica in virtual time: submit requests, advance the clock, collect completions.

    Steps are atomic. A step that has begun at `advance` keeps its composition; a request takes
    part in the first step that begins at or after its arrival plus `StepTime.request_s`.
    """

    def __init__(
        self,
        step_time: StepClock,
        *,
        max_sequences: int,
        step_token_budget: int,
        kv_capacity_tokens: float,
        block_tokens: int = 16,
        watermark_share: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        self.limits = EngineLimits(
            max_sequences=max_sequences,
            step_token_budget=step_token_budget,
            kv_capacity_tokens=kv_capacity_tokens,
            block_tokens=block_tokens,
            watermark_share=watermark_share,
        )
        self.counters = Counters()
        self._step_time = step_time
        self._tokens_per_step = float(getattr(step_time, "tokens_per_step", 1.0))
        self._window_tokens = int(getattr(step_time, "window_tokens", 0))
        self._observer = observer
        self._scheduler = Scheduler(
            self.limits,
            self.counters,
            tokens_per_step=self._tokens_per_step,
            request_s=float(getattr(step_time, "request_s", 0.0)),
            observer=observer,
        )
        self._clock_s = -math.inf
        self._boundary_s = -math.inf
        self._step: Step | None = None

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._scheduler.running)

    @property
    def waiting(self) -> int:
        """Requests that the engine has and that are not in the batch."""
        return sum(self._scheduler.ready_s(one) <= self._clock_s for one in self._scheduler.queue)

    @property
    def in_flight(self) -> int:
        """Requests that were submitted and have not finished."""
        return len(self._scheduler.running) + len(self._scheduler.queue)

    @property
    def kv_used_tokens(self) -> int:
        """Tokens that the occupied blocks of KV cache hold. [tokens]"""
        return (self.limits.blocks - self._scheduler.free_blocks) * self.limits.block_tokens

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._scheduler.running and not self._scheduler.queue

    @property
    def next_event_s(self) -> float:
        """To which moment `advance` has to go to do anything; infinite if idle. [s]"""
        if self._step is not None:
            return self._step.end_s
        return math.nextafter(self._begin_s(), math.inf)

    def submit(self, request: Request) -> None:
        """
        Accept a request that arrives now or later, in order of arrival.

        Raises
        ------
        ModelError
            If it could never finish in this KV cache, or arrives before the clock.
        """
        room_tokens = self.limits.room_tokens(self._tokens_per_step)
        if request.prompt_tokens + request.output_tokens > room_tokens:
            raise ModelError(
                f"prompt_tokens + output_tokens must be <= the KV cache ({room_tokens} tokens), "
                f"got {request.prompt_tokens} + {request.output_tokens}"
            )
        if request.arrival_s < self._clock_s:
            raise ModelError(
                f"arrival_s must be >= the replica's clock ({self._clock_s:g} s), "
                f"got {request.arrival_s:g}"
            )
        self._scheduler.queue.append(
            Sequence(request, prefill_tokens=request.prompt_tokens, computed_tokens=0)
        )

    def cancel(self, request_id: int) -> bool:
        """Forget a request whose client has gone; its step in progress is not shortened."""
        for one in self._scheduler.queue:
            if one.request.id == request_id:
                self._scheduler.queue.remove(one)
                return True
        for one in self._scheduler.running:
            if one.request.id == request_id:
                self._scheduler.release(one)
                if self._step is not None:
                    self._step.chunks = [c for c in self._step.chunks if c[0] is not one]
                    self._step.decoding = [s for s in self._step.decoding if s is not one]
                return True
        return False

    def advance(self, until_s: float) -> list[Completion]:
        """Run every step that ends by then and return what finished, in order."""
        done: list[Completion] = []
        while True:
            if self._step is None:
                begin_s = self._begin_s()
                if begin_s >= until_s:
                    break
                self._step = self._begin(begin_s)
            if self._step.end_s > until_s:
                break
            step, self._step = self._step, None
            done += self._finish(step)
        self._clock_s = max(self._clock_s, until_s)
        return done

    def _begin(self, begin_s: float) -> Step:
        step = self._scheduler.plan(begin_s)
        duration_s = self._duration_s(step)
        step.end_s = begin_s + duration_s
        self.counters.steps += 1
        self.counters.busy_s += duration_s
        return step

    def _begin_s(self) -> float:
        if self._scheduler.running:
            return self._boundary_s
        if not self._scheduler.queue:
            return math.inf
        return max(self._boundary_s, self._scheduler.ready_s(self._scheduler.queue[0]))

    def _duration_s(self, step: Step) -> float:
        contexts = [one.context_tokens for one in step.decoding]
        window = self._window_tokens
        return self._step_time.step_s(
            sequences=len(contexts),
            context_tokens=sum(contexts),
            prefill_tokens=sum(chunk for _, chunk in step.chunks),
            prefill_pairs=sum(
                chunk * (one.computed_tokens + (chunk - 1) / 2) for one, chunk in step.chunks
            ),
            window_context_tokens=sum(min(c, window) for c in contexts) if window else None,
        )

    def _finish(self, step: Step) -> list[Completion]:
        self._boundary_s = step.end_s
        for one in step.decoding:
            self._emit(one, self._tokens_per_step)
        for one, chunk in step.chunks:
            one.computed_tokens += chunk
            if one.is_decoding:
                self._emit(one, 1.0)
        done = [
            one
            for one in self._scheduler.running
            if one.generated_tokens >= one.request.output_tokens
        ]
        for one in done:
            self._scheduler.release(one)
        self.counters.finished += len(done)
        return [
            Completion(
                request=one.request,
                admitted_s=one.admitted_s,
                first_token_s=one.first_token_s,
                finished_s=step.end_s,
                preemptions=one.preemptions,
            )
            for one in done
        ]

    def _emit(self, one: Sequence, tokens: float) -> None:
        now_s = self._boundary_s
        before = int(one.generated_tokens)
        left = one.request.output_tokens - one.generated_tokens
        is_last = left <= tokens * (1 + ROUNDING)
        one.generated_tokens = (
            one.request.output_tokens if is_last else one.generated_tokens + tokens
        )
        one.units += 1
        self.counters.generation_tokens += int(one.generated_tokens) - before
        if math.isnan(one.first_token_s):
            one.first_token_s = now_s
            self.counters.prompt_tokens += one.request.prompt_tokens
            if self._observer:
                self._observer.first_token(one.request, now_s - one.request.arrival_s)
        elif self._observer:
            self._observer.token_gap(now_s - one.last_token_s, 1)
        one.last_token_s = now_s
