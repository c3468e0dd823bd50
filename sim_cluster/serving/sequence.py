"""What a replica keeps: the requests in its batch, its counters, and the clock of its steps."""

import math
from dataclasses import dataclass
from typing import Protocol

from sim_cluster.serving.request import Request


class StepClock(Protocol):
    """Whatever knows how long a step takes: `fleetline.model.step_time.StepTime`, or a table."""

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


@dataclass(slots=True)
class Counters:
    """What has happened so far, the way `/metrics` counts it."""

    prompt_tokens: int = 0
    """Prompt tokens of requests that got their first token, cached ones included."""
    generation_tokens: int = 0
    preemptions: int = 0
    finished: int = 0
    prefix_queries_tokens: int = 0
    prefix_hits_tokens: int = 0
    steps: int = 0
    busy_s: float = 0.0


@dataclass(slots=True, eq=False)
class Sequence:
    """A request inside the engine."""

    request: Request
    prefill_tokens: int
    """Tokens to compute before the next one can be sampled: prompt, and answer if preempted."""
    computed_tokens: int
    generated_tokens: float = 0.0
    admitted_s: float = math.nan
    first_token_s: float = math.nan
    last_token_s: float = math.nan
    preemptions: int = 0
    units: int = 0
    """Decode steps that its blocks have to hold, counting the prompt as steps."""
    blocks: int = 0

    @property
    def is_decoding(self) -> bool:
        """Whether its next step yields tokens without computing any prompt."""
        return self.computed_tokens >= self.prefill_tokens

    @property
    def context_tokens(self) -> float:
        """KV cache that its next decode step reads. [tokens]"""
        return self.request.prompt_tokens + self.generated_tokens
