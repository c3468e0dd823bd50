"""
What a pod template says about its engine: image, command line, environment.

Flag names and defaults are those of the engines' command-line references: vLLM `vllm serve`,
SGLang `launch_server`, TGI `text-generation-launcher`, TensorRT-LLM `trtllm-serve`, llama.cpp
`llama-server`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from fleetline.adapters.node_labels import MIG_RESOURCE, RESOURCES
from fleetline.adapters.replica_spec import EngineType
from fleetline.model.hardware import Precision

Json = Mapping[str, Any]

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

SHELL: Final = re.compile(r"(^|/)(ba|da|z|a)?sh$")
REFERENCE: Final = re.compile(r"\$[({](\w+)[)}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWords:
    """The engine container of a pod template, read as words."""

    type: EngineType | None
    type_detail: str
    values: Mapping[str, tuple[str, str]]
    """Value and the flag or variable that held it, by path below spec."""
    accelerators: int
    """Accelerators that one pod requests."""


def read_template(template: Json, told: EngineType | None = None) -> EngineWords:
    """Read the engine's settings from a pod template; what is not there is absent."""
    containers = [one for one in _spec(template).get("containers") or [] if isinstance(one, dict)]
    best = max(containers, key=_likelihood, default={})
    words, environment = command_line(best), _environment(best)
    kind, detail = (told, "spec.engine.type") if told is not None else engine_type(best, words)
    values: dict[str, tuple[str, str]] = {}
    if kind is not None:
        options = _options(words)
        for path, names in FLAGS[kind].items():
            found = _lookup(names, options, environment)
            if found is not None:
                values[path] = found
        positional = _positional_model(words)
        if positional and "model.name" not in values:
            values["model.name"] = (positional, "the command line")
    return EngineWords(
        type=kind, type_detail=detail, values=values, accelerators=_accelerators(best)
    )


def engine_type(container: Json, words: Sequence[str]) -> tuple[EngineType | None, str]:
    """Recognize the engine by its image, else by its command."""
    for place, told in (("image", str(container.get("image", ""))), ("command", " ".join(words))):
        for kind, pattern in IMAGES:
            if re.search(pattern, told, flags=re.IGNORECASE):
                return kind, f"{place} {told[:120]}"
    return None, ""


def precision_of(word: str) -> Precision | None:
    """Number format that a quantization or dtype word means; None for `auto` and the unknown."""
    for precision, pattern in PRECISIONS:
        if re.search(pattern, word, flags=re.IGNORECASE):
            return precision
    return None


def command_line(container: Json) -> list[str]:
    """Words of command and arguments, with variables filled in and shells unwrapped."""
    environment = _environment(container)
    raw = [*(container.get("command") or ()), *(container.get("args") or ())]
    words = [
        REFERENCE.sub(lambda found: environment.get(found[1], found[0]), str(word)) for word in raw
    ]
    if len(words) > 2 and SHELL.search(words[0]) and words[1].startswith("-"):
        try:
            return shlex.split(words[2])
        except ValueError:
            return words[2].split()
    return words


def _spec(template: Json) -> Json:
    spec = template.get("spec")
    return spec if isinstance(spec, dict) else {}


def _likelihood(container: Json) -> tuple[bool, int]:
    kind, _ = engine_type(container, command_line(container))
    return kind is not None, _accelerators(container)


def _environment(container: Json) -> dict[str, str]:
    return {
        str(one.get("name")): str(one["value"])
        for one in container.get("env") or ()
        if isinstance(one, dict) and one.get("value") is not None
    }


def _options(words: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for index, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        follower = words[index + 1] if index + 1 < len(words) else "-"
        if not has_value:
            value = "true" if re.match(r"-\D", follower) or follower == "-" else follower
        options[name.replace("_", "-")] = value
    return options


def _lookup(
    names: Sequence[str], options: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, str] | None:
    for name in names:
        if name.isupper() and name in environment:
            return environment[name], name
        if name in options:
            return options[name], f"{'-' if len(name) == 1 else '--'}{name}"
    return None


def _positional_model(words: Sequence[str]) -> str | None:
    """Return the model in `vllm serve MODEL` and `trtllm-serve MODEL`."""
    for before, word in pairwise(words):
        serves = re.search(r"(^|/)(serve|trtllm-serve)$", before) is not None
        if serves and word != "serve" and not word.startswith("-"):
            return word
    return None


def _accelerators(container: Json) -> int:
    resources = container.get("resources") or {}
    most = 0
    for kind in ("limits", "requests"):
        for name, amount in (resources.get(kind) or {}).items():
            if name in RESOURCES or str(name).startswith(MIG_RESOURCE):
                most = max(most, int(amount) if str(amount).isdigit() else 0)
    return most
