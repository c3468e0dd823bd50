"""
What the hardware can sustain: data sheet figures, and how much of them real kernels reach.

    time = max(flop / compute, bytes / bandwidth)

The ridge point, compute over bandwidth, divides work that waits for memory from
work that waits for arithmetic.
"""

from dataclasses import dataclass
from enum import StrEnum

from fleetline.errors import ModelError


class Precision(StrEnum):
    """Number formats of weights and of the KV cache."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"


BYTES_PER_VALUE = {
    Precision.FP32: 4.0,
    Precision.BF16: 2.0,
    Precision.FP16: 2.0,
    Precision.FP8: 1.0,
    Precision.INT8: 1.0,
    Precision.FP4: 0.5625,  # 4 bits and an 8-bit scale for each block of 16 (NVFP4)
    Precision.INT4: 0.5625,  # 4 bits and a 16-bit scale and zero for each group of 128, and padding
}
"""Stored bytes of one value, block scales included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """
    How much of the data sheet a serving engine reaches, and what a step costs besides.

    The defaults are pooled over H100, H200 and B200: fitted to 1,323 published online rows
    and 222 saturated ones (operator/docs/model.md, section "Step time").
    """

    bandwidth: float = 0.88
    """Share of peak memory bandwidth that reading weights reaches. 0..1"""
    kv_bandwidth: float = 0.77
    """Share of peak memory bandwidth that reading the KV cache reaches. 0..1"""
    compute: float = 0.48
    """Share of peak arithmetic that the narrow matrices of decode reach. 0..1"""
    prefill: float = 0.75
    """Share of peak arithmetic that prefill reaches. 0..1"""
    expert_compute: float = 0.47
    """What grouped matrices of experts reach of `compute`. 0..1"""
    expert_prefill: float = 0.34
    """What routing and grouped matrices of experts leave of `prefill`. 0..1"""
    four_bit_compute: float = 0.55
    """What formats of 4 bits reach of `compute` and `prefill`, relative to their own peak. 0..1"""
    layer_s: float = 50e-6
    """Fixed time of one layer in one step: launches, norms, small kernels. [s]"""
    parallel_layer_s: float = 15e-6
    """What tensor parallelism adds to it: the all-reduces of a small message. [s]"""
    expert_layer_s: float = 44e-6
    """What a layer of experts adds to it: routing, sorting, more kernels. [s]"""
    latent_layer_s: float = 20e-6
    """What multi-head latent attention adds to it: its low-rank projections. [s]"""
    sequence_s: float = 21.5e-6
    """Host-side time of one running sequence in one step: sampling, detokenizing. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as Kubernetes counts them: a GPU, a MIG slice or a chip."""

    name: str
    vendor: str
    memory_bytes: float
    bandwidth_bytes_per_s: float
    bf16_flop_per_s: float
    fp8_flop_per_s: float | None = None
    fp4_flop_per_s: float | None = None
    int8_flop_per_s: float | None = None
    interconnect_bytes_per_s: float | None = None
    efficiency: Efficiency = Efficiency()

    def compute_flop_per_s(self, precision: Precision) -> float:
        """
        Peak arithmetic rate for weights of a precision. [flop/s]

        A format without units of its own is widened to the next that has them:
        weights are dequantized on the way in and multiplied as bf16.
        """
        if precision is Precision.FP32:
            return self.bf16_flop_per_s / 2
        rates = {
            Precision.FP4: (self.fp4_flop_per_s, self.fp8_flop_per_s),
            Precision.FP8: (self.fp8_flop_per_s,),
            Precision.INT8: (self.int8_flop_per_s,),
        }.get(precision, ())
        return next((rate for rate in rates if rate), self.bf16_flop_per_s)

    def ridge_point_flop_per_byte(self, precision: Precision = Precision.BF16) -> float:
        """Arithmetic intensity at which compute and bandwidth run out together. [flop/byte]"""
        return self.compute_flop_per_s(precision) / self.bandwidth_bytes_per_s

    def __post_init__(self) -> None:
        """Refuse what would make every formula meaningless."""
        for field in ("memory_bytes", "bandwidth_bytes_per_s", "bf16_flop_per_s"):
            if not getattr(self, field) > 0:
                raise ModelError(f"{self.name}.{field} must be > 0, got {getattr(self, field):g}")
