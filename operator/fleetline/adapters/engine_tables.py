"""
Flags, defaults and images of the serving engines.

Names and defaults are those of the engines' command-line references: vLLM `vllm serve`, SGLang
`launch_server`, TGI `text-generation-launcher`, TensorRT-LLM `trtllm-serve`, llama.cpp
`llama-server`.
"""

from collections.abc import Mapping
from typing import Final

from fleetline.adapters.replica_spec import EngineType
from fleetline.model.hardware import Precision

IMAGES: Final = (
    (EngineType.VLLM, r"vllm"),
    (EngineType.SGLANG, r"sglang|sgl-project"),
    (EngineType.TGI, r"text-generation-inference|\btgi\b"),
    (EngineType.TENSORRT_LLM, r"tensorrt-?llm|trtllm"),
    (EngineType.TRITON, r"tritonserver"),
    (EngineType.LLAMA_CPP, r"llama[.-]?cpp|llama-server"),
)
"""Words in an image or a command that tell the engine, first match wins."""

FLAGS: Final[Mapping[EngineType, Mapping[str, tuple[str, ...]]]] = {
    EngineType.VLLM: {
        "model.name": ("model",),
        "metrics.modelName": ("served-model-name",),
        "engine.maxSequences": ("max-num-seqs",),
        "engine.stepTokenBudget": ("max-num-batched-tokens",),
        "engine.maxContextTokens": ("max-model-len",),
        "engine.memoryUtilization": ("gpu-memory-utilization",),
        "engine.tensorParallel": ("tensor-parallel-size", "tp"),
        "engine.pipelineParallel": ("pipeline-parallel-size", "pp"),
        "engine.dataParallel": ("data-parallel-size", "dp"),
        "engine.expertParallel": ("enable-expert-parallel",),
        "engine.weightPrecision": ("quantization", "q"),
        "engine.kvPrecision": ("kv-cache-dtype",),
    },
    EngineType.SGLANG: {
        "model.name": ("model-path", "model"),
        "metrics.modelName": ("served-model-name",),
        "engine.maxSequences": ("max-running-requests",),
        "engine.stepTokenBudget": ("chunked-prefill-size",),
        "engine.maxContextTokens": ("context-length",),
        "engine.memoryUtilization": ("mem-fraction-static",),
        "engine.tensorParallel": ("tensor-parallel-size", "tp-size", "tp"),
        "engine.pipelineParallel": ("pipeline-parallel-size", "pp-size"),
        "engine.dataParallel": ("data-parallel-size", "dp-size", "dp"),
        "engine.expertParallel": ("enable-ep-moe",),
        "engine.weightPrecision": ("quantization",),
        "engine.kvPrecision": ("kv-cache-dtype",),
    },
    EngineType.TGI: {
        "model.name": ("model-id", "MODEL_ID"),
        "engine.maxSequences": ("max-batch-size", "MAX_BATCH_SIZE"),
        "engine.stepTokenBudget": ("max-batch-prefill-tokens", "MAX_BATCH_PREFILL_TOKENS"),
        "engine.maxContextTokens": ("max-total-tokens", "MAX_TOTAL_TOKENS"),
        "engine.memoryUtilization": ("cuda-memory-fraction", "CUDA_MEMORY_FRACTION"),
        "engine.tensorParallel": ("num-shard", "NUM_SHARD"),
        "engine.weightPrecision": ("quantize", "QUANTIZE"),
        "engine.kvPrecision": ("kv-cache-dtype", "KV_CACHE_DTYPE"),
    },
    EngineType.TENSORRT_LLM: {
        "model.name": ("model",),
        "engine.maxSequences": ("max-batch-size",),
        "engine.stepTokenBudget": ("max-num-tokens",),
        "engine.maxContextTokens": ("max-seq-len",),
        "engine.memoryUtilization": ("kv-cache-free-gpu-memory-fraction",),
        "engine.tensorParallel": ("tp-size",),
        "engine.pipelineParallel": ("pp-size",),
    },
    EngineType.TRITON: {},
    EngineType.LLAMA_CPP: {
        "model.name": ("model", "m", "hf-repo", "LLAMA_ARG_HF_REPO"),
        "engine.maxSequences": ("parallel", "np", "LLAMA_ARG_N_PARALLEL"),
        "engine.stepTokenBudget": ("batch-size", "b"),
        "engine.maxContextTokens": ("ctx-size", "c"),
    },
}
"""Flags, and environment variables in capitals, in order of preference."""

DEFAULTS: Final[Mapping[EngineType, Mapping[str, float]]] = {
    EngineType.VLLM: {
        "engine.maxSequences": 256,
        "engine.stepTokenBudget": 8192,
        "engine.memoryUtilization": 0.9,
    },
    EngineType.SGLANG: {
        "engine.maxSequences": 256,
        "engine.stepTokenBudget": 8192,
        "engine.memoryUtilization": 0.88,
    },
    EngineType.TGI: {
        "engine.maxSequences": 128,
        "engine.stepTokenBudget": 4096,
        "engine.memoryUtilization": 0.9,
    },
    EngineType.TENSORRT_LLM: {
        "engine.maxSequences": 2048,
        "engine.stepTokenBudget": 8192,
        "engine.memoryUtilization": 0.9,
    },
    EngineType.TRITON: {
        "engine.maxSequences": 256,
        "engine.stepTokenBudget": 8192,
        "engine.memoryUtilization": 0.9,
    },
    EngineType.LLAMA_CPP: {
        "engine.maxSequences": 4,
        "engine.stepTokenBudget": 2048,
        "engine.memoryUtilization": 0.9,
    },
}

PRECISIONS: Final = (
    (Precision.FP8, r"fp8|e4m3|e5m2"),
    (Precision.FP4, r"fp4"),
    (Precision.INT8, r"int8|w8a8|eetq|bitsandbytes$"),
    (Precision.INT4, r"awq|gptq|int4|w4a16|marlin|nf4|4bit"),
    (Precision.BF16, r"bfloat16|bf16"),
    (Precision.FP16, r"float16|fp16|half"),
    (Precision.FP32, r"float32|fp32"),
)
