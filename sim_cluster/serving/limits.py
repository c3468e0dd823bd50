"""The limits of one engine: slots, tokens of a step, blocks of KV cache."""

import math
from dataclasses import dataclass

from fleetline.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What an engine is started with; the defaults are vLLM's."""

    max_sequences: int = 256
    """Slots of the batch (`--max-num-seqs`). [requests]"""
    step_token_budget: int = 8192
    """Most tokens in one step (`--max-num-batched-tokens`). [tokens]"""
    kv_capacity_tokens: float
    """What the KV cache holds. [tokens]"""
    block_tokens: int = 16
    """Tokens of one block of KV cache (`--block-size`). [tokens]"""
    watermark_share: float = 0.0
    """Share of blocks that admission leaves free while anything runs. 0..1"""

    def __post_init__(self) -> None:
        """Refuse what no engine starts with."""
        for field in ("max_sequences", "block_tokens"):
            if getattr(self, field) < 1:
                raise ModelError(f"{field} must be >= 1, got {getattr(self, field)}")
        if self.step_token_budget < self.max_sequences:
            raise ModelError(
                f"step_token_budget must be >= max_sequences ({self.max_sequences}), "
                f"got {self.step_token_budget}"
            )
        if not self.kv_capacity_tokens >= self.block_tokens:
            raise ModelError(
                f"kv_capacity_tokens must be >= block_tokens ({self.block_tokens}), "
                f"got {self.kv_capacity_tokens:g}"
            )
        if not 0 <= self.watermark_share < 1:
            raise ModelError(f"watermark_share must be >= 0 and < 1, got {self.watermark_share:g}")

    @property
    def blocks(self) -> int:
        """Blocks of KV cache."""
        return int(min(self.kv_capacity_tokens // self.block_tokens, 2**40))

    @property
    def watermark_blocks(self) -> int:
        """Blocks that admission leaves free while anything runs."""
        return math.ceil(self.watermark_share * self.blocks)

    def units_per_block(self, tokens_per_step: float) -> int:
        """Decode steps of one sequence that a block holds."""
        return max(1, round(self.block_tokens / tokens_per_step))

    def room_tokens(self, tokens_per_step: float = 1.0) -> int:
        """
        Most tokens, prompt and answer together, that a request alone can reach.

        With several tokens a step, blocks are counted in steps; two are lost to rounding.
        """
        if tokens_per_step == 1:
            return self.blocks * self.block_tokens
        steps = self.blocks * self.units_per_block(tokens_per_step) - 2
        return min(self.blocks * self.block_tokens, int(steps * tokens_per_step))
