"""
The time of one engine step, as a dozen coefficients: all that the simulator shares with the model.

    t = fixed + linear layers + attention + sequences * sequence_s
    linear    = max(weights / bandwidth, (decoded + prompt tokens) * flop / compute)
    attention = max(cache / bandwidth, decode flop / compute) + prompt pairs * prefill_pair_s

A few prompt tokens hide behind the reading of weights; many of them outlast it. Attention runs in
kernels of its own, so reading the cache hides nothing.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Coefficients of the time of one step of one replica (of one data-parallel rank)."""

    fixed_s: float
    """Launches and all-reduces of all layers. [s]"""
    weights_read_s: float
    """Reading the weights that every step touches. [s]"""
    experts_read_s: float = 0.0
    """Reading all routed experts; a step touches a share of them. [s]"""
    expert_miss_probability: float = 0.0
    """Probability that one token leaves a given expert alone: 1 - top_k / experts."""
    kv_read_s_per_token: float
    """Reading one token of KV cache in layers that keep all context. [s/token]"""
    window_read_s_per_token: float = 0.0
    """Reading one token of KV cache in sliding-window layers. [s/token]"""
    window_tokens: int = 0
    """Length of the window; 0 if there is none. [tokens]"""
    token_compute_s: float
    """Arithmetic of one decoded token in the linear layers. [s/token]"""
    context_compute_s_per_token: float = 0.0
    """Arithmetic of attention over one token of context. [s/token]"""
    sequence_s: float
    """Host-side time of one running sequence. [s]"""
    prefill_token_s: float
    """Time that one prompt token adds to a step. [s/token]"""
    prefill_pair_s: float = 0.0
    """Time that one (prompt token, earlier token) pair of attention adds. [s]"""
    request_s: float = 0.0
    """Time of a request outside the engine's steps: HTTP, tokenizing; once, in the TTFT. [s]"""
    tokens_per_step: float = 1.0
    """Tokens that a decode step yields per sequence. [tokens]"""

    def decode_s(
        self, sequences: float, context_tokens: float, window_context_tokens: float | None = None
    ) -> float:
        """
        Time of a step that decodes one token for each sequence.

        Parameters
        ----------
        sequences
            Sequences decoded together. [requests]
        context_tokens
            KV cache read by all of them together. [tokens]
        window_context_tokens
            The same, each sequence capped at `window_tokens`; None: `context_tokens`. [tokens]
        """
        if sequences <= 0:
            return 0.0
        windowed = context_tokens if window_context_tokens is None else window_context_tokens
        return (
            self.fixed_s
            + self.linear_s(sequences, 0.0)
            + self.attention_s(context_tokens, windowed)
            + self.sequence_s * sequences
        )

    def linear_s(self, sequences: float, prefill_tokens: float) -> float:
        """Linear layers of a step: weights are read once, and multiply every token. [s]"""
        touched = 1.0 - math.pow(self.expert_miss_probability, sequences)
        read_s = self.weights_read_s + self.experts_read_s * touched
        return max(read_s, self.token_compute_s * sequences + self.prefill_token_s * prefill_tokens)

    def attention_s(self, context_tokens: float, window_context_tokens: float) -> float:
        """Attention of all decoded tokens over the cache that they read. [s]"""
        read_s = (
            self.kv_read_s_per_token * context_tokens
            + self.window_read_s_per_token * window_context_tokens
        )
        return max(read_s, self.context_compute_s_per_token * context_tokens)

    def step_s(
        self,
        *,
        sequences: float,
        context_tokens: float,
        prefill_tokens: float,
        prefill_pairs: float = 0.0,
        window_context_tokens: float | None = None,
    ) -> float:
        """
        Time of a step that decodes and prefills chunks of prompts besides.

        `prefill_pairs` is the sum over chunks of (chunk tokens x mean context before each).
        A step without decoding sequences still pays the launches and one pass over the weights,
        unless its prompt tokens take longer.
        """
        if prefill_tokens <= 0:
            return self.decode_s(sequences, context_tokens, window_context_tokens)
        pairs_s = prefill_pairs * self.prefill_pair_s
        if sequences > 0:
            return (
                self.decode_s(sequences, context_tokens, window_context_tokens)
                - self.linear_s(sequences, 0.0)
                + self.linear_s(sequences, prefill_tokens)
                + pairs_s
            )
        read_s = self.weights_read_s + self.experts_read_s
        return self.fixed_s + max(read_s, prefill_tokens * self.prefill_token_s) + pairs_s
