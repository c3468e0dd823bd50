"""
Many questions at once: the coefficients of replicas and workloads, stacked into arrays.

Axes: question, point of a grid of concurrencies, kind of request. One question is a stack of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fleetline.model.coefficients import COEFFICIENTS, NUMBERS, numbers
from fleetline.model.kinds import KIND_FIELDS, Array, Kinds, condensed, stacked
from fleetline.model.lives import Lives
from fleetline.model.once import once
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

BLOCK_SLACK_TOKENS = 8.0
"""Half a block of 16 tokens: what the last block of a sequence leaves empty on average."""

KV_FILL = 0.97
"""Share of the cache that is of use when requests wait for it: the rest is kept by what preemption
computes twice (iteration-level simulation, 8 shapes on two accelerators: 0.93 to 1)."""


@dataclass(kw_only=True, eq=False)
class Lanes:
    """
    Coefficients of the step time and of the workload, shape (questions, 1) each.

    What follows from them alone is worked out once, when it is first needed. Never changed, but not
    frozen either: that would make it five times slower to build.
    """

    step: dict[str, Array]
    kinds: Kinds
    """Shape (questions, 1, kinds)."""
    prefill_work_s: Array
    """Work that the prompt of each kind brings; shape (questions, 1, kinds). [s]"""
    work_s: Array
    """Its mean, P. [s]"""
    work_square_s2: Array
    """Mean of its square. [s^2]"""
    decode_steps: Array
    """Mean decode steps of a request: the first token comes with the prefill. [steps]"""
    prompt_tokens: Array
    """Mean part of a prompt that has to be computed. [tokens]"""
    prompt_square: Array
    """Mean of its square. [tokens^2]"""
    bursts: Array
    """Dispersion beyond that of Poisson arrivals, at one replica: each gets its share."""
    stay_square: Array
    """Square of the coefficient of variation of the stay of a request, as far as answers tell."""
    shared_stay: Array
    """Share of its stay that a request spends with another that came with it."""
    outside: Array
    """How far the next prompt comes whatever the batch does: 1 for Poisson arrivals, one half for
    arrivals like clockwork, of which a life of W meets W lambda - 1/2."""
    coupling: Array
    """How far arrivals at a replica follow the clock rather than its own departures, 0..1."""
    context_tokens: Array
    """Mean context of a request in the decode phase: long answers stay longer. [tokens]"""
    context_square: Array
    """Mean of its square. [tokens^2]"""
    window_context_tokens: Array
    """The same, capped at the window of sliding-window layers. [tokens]"""
    dispersion: Array
    """Variance over mean of arrival counts at one replica: each gets its share of the bursts."""
    max_sequences: Array
    step_token_budget: Array
    kv_capacity_tokens: Array
    lanes: Array
    """Lanes per replica."""
    replicas: Array
    """Replicas behind one router."""

    def only(self, rows: NDArray[np.intp]) -> Self:
        """Some of the questions."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        step, kinds = own.pop("step"), own.pop("kinds")
        return type(self)(
            step={name: values[rows] for name, values in step.items()},
            kinds=Kinds(**{name: getattr(kinds, name)[rows] for name in KIND_FIELDS}),
            **{name: values[rows] for name, values in own.items()},
        )

    @property
    def is_alone(self) -> bool:
        """Whether this is one question without the axis of questions."""
        return self.replicas.ndim == 0

    @once
    def has_experts(self) -> bool:
        """Whether any model reads only the weights that its batch touches."""
        return bool(self.step["experts_read_s"].any())

    @once
    def is_speculative(self) -> bool:
        """Whether any step yields more or less than a token per sequence."""
        return bool((self.step["tokens_per_step"] != 1.0).any())

    @once
    def is_poisson(self) -> bool:
        """Whether arrivals of all questions are neither bursts nor like clockwork."""
        return not self.bursts.any()

    @once
    def crowding(self) -> Array:
        """Dispersion beyond Poisson's, of those that have more of it."""
        return np.maximum(self.bursts, 0.0)

    @once
    def each_s(self) -> Array:
        """What one more sequence adds to a step: arithmetic, host, and its context. [s]"""
        step = self.step
        cache_s = (
            step["kv_read_s_per_token"] * self.context_tokens
            + step["window_read_s_per_token"] * self.window_context_tokens
        )
        dot_s = step["context_compute_s_per_token"] * self.context_tokens
        return step["token_compute_s"] + step["sequence_s"] + np.maximum(cache_s, dot_s)

    @once
    def prefill_square_s2(self) -> Array:
        """Square of the work of each kind's prompt; shape (questions, 1, kinds). [s^2]"""
        return self.prefill_work_s * self.prefill_work_s

    @once
    def prefill_uneven(self) -> Array:
        """The same over the square of their mean work."""
        return self.prefill_square_s2 / (self.work_s * self.work_s)[..., np.newaxis]

    @once
    def prefill_token_s(self) -> Array:
        """Work of one prompt token, by tokens rather than by prompts. [s/token]"""
        work = self.prefill_work_s * self.kinds.prompt_tokens
        return np.asarray(np.vecdot(self.kinds.weights, work) / self.prompt_square)

    @once
    def work_uneven(self) -> Array:
        """Mean square of a prompt's work over the square of its mean."""
        return self.work_square_s2 / (self.work_s * self.work_s)

    @once
    def lives(self) -> Lives:
        """Lives of the kinds of requests."""
        per_step = self.step["tokens_per_step"][..., np.newaxis]
        steps = np.maximum((self.kinds.output_tokens - 1.0) / per_step, 1.0)
        renewed = (1.0 - self.coupling) * (self.stay_square - 1.0) / self.work_uneven
        return Lives.of(steps, self.decode_steps, self.coupling, renewed)

    @once
    def kv_limit(self) -> Array:
        """Requests whose contexts fill the KV cache. [requests]"""
        return KV_FILL * self.kv_capacity_tokens / (self.context_tokens + BLOCK_SLACK_TOKENS)

    @once
    def batch_limit(self) -> Array:
        """Most requests that one lane runs at once: its slots or its KV cache. [requests]"""
        return np.minimum(self.max_sequences, self.kv_limit)

    @once
    def limit_uneven(self) -> Array:
        """Mean square of the share of the limit that a request holds, over that of its mean."""
        uneven = self.context_square / (self.context_tokens * self.context_tokens)
        return np.where(self.kv_limit < self.max_sequences, uneven, 1.0)

    @once
    def prefill_limit(self) -> Array:
        """Requests that decode when every step is full of prompts. [requests]"""
        return self.step_token_budget / (self.prompt_tokens / self.decode_steps + 1.0)

    @classmethod
    def of(cls, questions: Sequence[tuple[Replica, Workload, float]]) -> Self:
        """Stack (replica, workload, replicas behind one router)."""
        kinds = stacked([condensed(workload.lengths) for _, workload, _ in questions])
        table = np.array([numbers(*question) for question in questions])
        return cls._of(kinds, list(table.T[:, :, np.newaxis]))

    @classmethod
    def alone(cls, replica: Replica, workload: Workload, replicas: float) -> Self:
        """
        One question without the axis of questions: its coefficients are numbers.

        Arithmetic with a number takes a tenth of the time of that with an array of one.
        """
        kinds = condensed(workload.lengths)
        return cls._of(kinds, list(np.array(numbers(replica, workload, replicas))))

    @classmethod
    def _of(cls, kinds: Kinds, columns: Sequence[Array]) -> Self:
        given = dict(zip(NUMBERS, columns, strict=True))
        step = {name: given.pop(name) for name in COEFFICIENTS}
        replicas, weights = given["replicas"], kinds.weights
        bursts = given.pop("dispersion_beyond") / replicas
        coupling = replicas**POOLING_EXPONENT
        token_s, pair_s = step["prefill_token_s"], step["prefill_pair_s"]
        work = kinds.prompt_tokens * token_s[..., np.newaxis]
        work = work + kinds.prompt_pairs * pair_s[..., np.newaxis]
        answers = np.maximum(kinds.mean_output_tokens - 1.0, LEAST_STEPS)
        return cls(
            step=step,
            kinds=kinds,
            prefill_work_s=work,
            work_s=np.vecdot(weights, work),
            work_square_s2=np.vecdot(weights, work * work),
            decode_steps=answers / step["tokens_per_step"],
            prompt_tokens=kinds.mean_prompt_tokens,
            prompt_square=kinds.prompt_square,
            bursts=bursts,
            stay_square=kinds.stay_square,
            outside=coupling * np.minimum(1.0 + bursts / 2.0, 1.0),
            coupling=coupling,
            dispersion=1.0 + bursts,
            **given,
        )


LEAST_STEPS = 1e-12
"""Decode steps of answers of one token: none, but no division by zero. [steps]"""

POOLING_EXPONENT = -0.6
"""Behind a least-loaded router a replica gets its next request when one has left: the more
replicas, the more each works like a closed loop. From iteration-level simulation."""
