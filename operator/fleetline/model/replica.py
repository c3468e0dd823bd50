"""One serving replica: which model, on which accelerators, split how, with which engine limits."""

from dataclasses import dataclass

from fleetline.errors import ModelError
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Factors learned from measurements; 1 is the physical prior."""

    step: float = 1.0
    """Measured over predicted time of a decode step."""
    sequence: float = 1.0
    """Measured over predicted time that one more running sequence adds."""
    prefill: float = 1.0
    """Measured over predicted time of a prompt token."""
    request_s: float | None = None
    """Measured time of a request outside the engine's steps; None takes the prior. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What the scale subresource counts: one engine and its accelerators."""

    architecture: Architecture
    accelerator: Accelerator
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: bool = False
    weight_precision: Precision = Precision.BF16
    kv_precision: Precision = Precision.BF16
    max_sequences: int = 256
    """Slots of the batch (vLLM `--max-num-seqs`). [requests]"""
    step_token_budget: int = 8192
    """Most tokens in one step (vLLM `--max-num-batched-tokens`). [tokens]"""
    memory_utilization: float = 0.90
    """Share of memory the engine may fill (vLLM `--gpu-memory-utilization`). 0..1"""
    tokens_per_step: float = 1.0
    """Tokens that a decode step yields per sequence: above 1 with speculative decoding."""
    calibration: Calibration = Calibration()

    @property
    def accelerators(self) -> int:
        """Accelerators that one replica occupies."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def lanes(self) -> int:
        """Batches that run side by side: data-parallel ranks times pipeline micro-batches."""
        return self.data_parallel * self.pipeline_parallel

    def __post_init__(self) -> None:
        """Refuse what would make every formula meaningless."""
        counts = ("tensor_parallel", "pipeline_parallel", "data_parallel", "max_sequences")
        for field in (*counts, "step_token_budget"):
            if getattr(self, field) < 1:
                raise ModelError(f"{field} must be >= 1, got {getattr(self, field)}")
        if not 0 < self.memory_utilization <= 1:
            raise ModelError(
                f"memory_utilization must be > 0 and <= 1, got {self.memory_utilization:g}"
            )
