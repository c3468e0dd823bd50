"""Which engine a pod runs, read from its containers the way the engine itself would read them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from fleetline.model.hardware import Precision
from fleetline.model.replica import Replica
from sim_cluster.nodes import catalog
from sim_cluster.nodes.node_specs import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetline.model.hardware import Accelerator

DEFAULT_PORT: Final = 8000
MODEL_ANNOTATION: Final = "sim.fleetline.dev/model"
"""Names the model where the command line does not."""

_REFERENCE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_SHELL: Final = re.compile(r"(^|/)(ba|da|z)?sh$")
_SHORT_FLAGS: Final = {
    "tp": "tensor-parallel-size",
    "tp-size": "tensor-parallel-size",
    "dp": "data-parallel-size",
    "dp-size": "data-parallel-size",
    "pp": "pipeline-parallel-size",
    "pp-size": "pipeline-parallel-size",
    "model-path": "model",
    "max-running-requests": "max-num-seqs",
    "chunked-prefill-size": "max-num-batched-tokens",
    "mem-fraction-static": "gpu-memory-utilization",
    "page-size": "block-size",
}
"""Short spellings of vLLM and SGLang's names, each as vLLM's long name."""
_PRECISIONS: Final = {
    "fp8": Precision.FP8,
    "fp8_e4m3": Precision.FP8,
    "fp8_e5m2": Precision.FP8,
    "bfloat16": Precision.BF16,
    "float16": Precision.FP16,
    "half": Precision.FP16,
    "float32": Precision.FP32,
    "awq": Precision.INT4,
    "gptq": Precision.INT4,
    "modelopt_fp4": Precision.FP4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """A serving engine as a pod asks for it."""

    served_name: str
    """Value of the label `model_name`."""
    dialect: str
    """Whose metric names it speaks: `vllm` or `sglang`."""
    port: int
    replica: Replica
    block_tokens: int = 16
    prefix_caching: bool = True


def read_engine(pod: Mapping[str, Any], accelerator: Accelerator) -> EngineSpec | None:
    """
    Read the engine of a pod; None if none of its containers serves a model.

    Raises
    ------
    ValueError
        If the model is not in the catalogue, or an option is no number.
    """
    for container in pod["spec"].get("containers", ()):
        words = _command_line(container)
        options = _options(words)
        annotations = pod["metadata"].get("annotations") or {}
        name = options.get("model") or _positional_model(words) or annotations.get(MODEL_ANNOTATION)
        if name:
            return _spec(name, words, options, accelerator)
    return None


def accelerators_of(pod: Mapping[str, Any]) -> int:
    """Count the accelerators that a pod asks for."""
    return sum(
        int(amount)
        for container in pod["spec"].get("containers", ())
        for resource, amount in (container.get("resources", {}).get("limits") or {}).items()
        if resource in RESOURCES.values()
    )


def _command_line(container: Mapping[str, Any]) -> list[str]:
    environment = {one["name"]: one.get("value", "") for one in container.get("env") or ()}
    raw = [*(container.get("command") or ()), *(container.get("args") or ())]
    words = [_REFERENCE.sub(lambda found: environment.get(found[1], found[0]), w) for w in raw]
    if len(words) > 2 and _SHELL.search(words[0]) and words[1].startswith("-"):
        return shlex.split(words[2])  # `sh -c "vllm serve ..."`
    return words


def _positional_model(words: Sequence[str]) -> str | None:
    for before, word in pairwise(words):
        if before == "serve" and not word.startswith("-"):
            return word
    return None


def _options(words: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for index, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        follower = words[index + 1] if index + 1 < len(words) else "-"
        if not has_value:
            value = "true" if follower.startswith("-") else follower
        name = name.replace("_", "-")
        options[_SHORT_FLAGS.get(name, name)] = value
    return options


def _spec(
    name: str, words: Sequence[str], options: Mapping[str, str], accelerator: Accelerator
) -> EngineSpec:
    architecture, published = catalog.model(name)
    by_name = Precision.FP8 if "fp8" in name.lower() else published
    stored = options.get("quantization") or options.get("dtype", "auto")
    weights = _PRECISIONS.get(stored, by_name)
    slots = int(options.get("max-num-seqs", 256))
    replica = Replica(
        architecture=architecture,
        accelerator=accelerator,
        tensor_parallel=int(options.get("tensor-parallel-size", 1)),
        pipeline_parallel=int(options.get("pipeline-parallel-size", 1)),
        data_parallel=int(options.get("data-parallel-size", 1)),
        expert_parallel="enable-expert-parallel" in options,
        weight_precision=weights,
        kv_precision=_PRECISIONS.get(options.get("kv-cache-dtype", "auto"), Precision.BF16),
        max_sequences=slots,
        step_token_budget=max(int(options.get("max-num-batched-tokens", 8192)), slots),
        memory_utilization=float(options.get("gpu-memory-utilization", 0.90)),
    )
    return EngineSpec(
        served_name=options.get("served-model-name", name),
        dialect="sglang" if any("sglang" in word for word in words) else "vllm",
        port=int(options.get("port", DEFAULT_PORT)),
        replica=replica,
        block_tokens=int(options.get("block-size", 16)),
        prefix_caching="no-enable-prefix-caching" not in options,
    )
