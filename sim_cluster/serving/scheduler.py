"""
Who takes part in a step: the scheduler of the reference engine.

Running requests come first: a token for each that decodes, by preemption of the request admitted
last if blocks are short; then the prompt in progress; then the queue, in order.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.request import Observer
from sim_cluster.serving.sequence import Counters, Sequence

ROUNDING = 1e-9
"""A sum of fractional tokens this close to a whole one has reached it."""


@dataclass(slots=True)
class Step:
    """One step: what it carries, and when it ends."""

    end_s: float
    chunks: list[tuple[Sequence, int]] = field(default_factory=list)
    """Prompts, and how many of their tokens are computed."""
    decoding: list[Sequence] = field(default_factory=list)


class Scheduler:
    """The queue, the batch and the free blocks of KV cache."""

    def __init__(
        self,
        limits: EngineLimits,
        counters: Counters,
        *,
        tokens_per_step: float,
        request_s: float,
        observer: Observer | None,
    ) -> None:
        self.queue: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        """In order of admission."""
        self.free_blocks = limits.blocks
        self._limits = limits
        self._counters = counters
        self._tokens_per_step = tokens_per_step
        self._units_per_block = limits.units_per_block(tokens_per_step)
        self._request_s = request_s
        self._observer = observer

    def ready_s(self, one: Sequence) -> float:
        """Moment from which the engine knows a request: past HTTP and tokenizer. [s]"""
        return one.request.arrival_s + self._request_s

    def plan(self, begin_s: float) -> Step:
        """Choose who takes part in the step that begins now."""
        preempted = self._take_blocks_for_answers()
        step = Step(begin_s, decoding=[one for one in self.running if one.is_decoding])
        budget = self._limits.step_token_budget - len(step.decoding)
        for one in self.running:
            if not one.is_decoding:
                budget = self._add_chunk(step, one, budget)
        if not preempted:
            self._admit(step, begin_s, budget)
        return step

    def release(self, one: Sequence) -> None:
        """Take a request out of the batch and free its blocks."""
        self.running.remove(one)
        self.free_blocks += one.blocks

    def _take_blocks_for_answers(self) -> bool:
        """Give each decoding sequence the block it needs; say whether that took preemption."""
        preempted = False
        while True:
            needy = [
                one
                for one in self.running
                if one.is_decoding and one.units > one.blocks * self._units_per_block
            ]
            if len(needy) <= self.free_blocks:
                break
            self._preempt(self.running[-1])
            preempted = True
        for one in needy:
            one.blocks += 1
        self.free_blocks -= len(needy)
        return preempted

    def _preempt(self, one: Sequence) -> None:
        self.release(one)
        one.blocks = 0
        one.preemptions += 1
        one.computed_tokens = 0
        one.generated_tokens = float(math.floor(one.generated_tokens + ROUNDING))
        one.prefill_tokens = one.request.prompt_tokens + int(one.generated_tokens)
        self.queue.appendleft(one)
        self._counters.preemptions += 1

    def _admit(self, step: Step, begin_s: float, budget: int) -> None:
        while (
            budget > 0
            and self.queue
            and len(self.running) < self._limits.max_sequences
            and self.ready_s(self.queue[0]) <= begin_s
        ):
            one = self.queue[0]
            units = math.ceil(one.prefill_tokens / self._tokens_per_step)
            blocks = math.ceil(units / self._units_per_block)
            watermark = self._limits.watermark_blocks if self.running else 0
            if blocks + watermark > self.free_blocks:
                break
            self.running.append(self.queue.popleft())
            self.free_blocks -= blocks
            one.units, one.blocks = units, blocks
            self._begin_prompt(one, begin_s)
            budget = self._add_chunk(step, one, budget)

    def _begin_prompt(self, one: Sequence, begin_s: float) -> None:
        cached = min(one.request.cached_prompt_tokens, one.request.prompt_tokens - 1)
        one.computed_tokens = cached
        self._counters.prefix_queries_tokens += one.prefill_tokens
        self._counters.prefix_hits_tokens += cached
        if math.isnan(one.admitted_s):
            one.admitted_s = begin_s
            if self._observer:
                self._observer.admitted(one.request, begin_s - self.ready_s(one))

    @staticmethod
    def _add_chunk(step: Step, one: Sequence, budget: int) -> int:
        chunk = min(one.prefill_tokens - one.computed_tokens, budget)
        step.chunks.append((one, chunk))
        return budget - chunk
