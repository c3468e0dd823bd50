"""What the CR says about a replica: model, engine, accelerator. The rest is discovered."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetline.adapters.fields import Json, choice, flag, integer, required, table, text
from fleetline.errors import ManifestError
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Precision

MODEL_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?"
ACCELERATOR_NAME: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
MOST_ACCELERATORS: Final = 4096
PERCENT: Final = 100.0
INT32: Final = 2**31 - 1


class EngineType(StrEnum):
    """Serving engines whose flags and metric names are known."""

    VLLM = "VLLM"
    SGLANG = "SGLang"
    TGI = "TGI"
    TENSORRT_LLM = "TensorRTLLM"
    TRITON = "Triton"
    LLAMA_CPP = "LlamaCpp"


class PrecisionName(StrEnum):
    """Number formats as the CR spells them."""

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    FP8 = "FP8"
    INT8 = "INT8"
    FP4 = "FP4"
    INT4 = "INT4"

    @property
    def precision(self) -> Precision:
        """The model's word for it."""
        return Precision(self.value.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Engine settings; None where nothing is said."""

    type: EngineType | None = None
    max_sequences: int | None = None
    step_token_budget: int | None = None
    max_context_tokens: int | None = None
    memory_utilization: float | None = None
    weight_precision: Precision | None = None
    kv_precision: Precision | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    expert_parallel: bool | None = None
    tokens_per_step: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """What the owner says about one replica."""

    model_name: str | None = None
    architecture: Architecture | None = None
    engine: EngineSpec = EngineSpec()
    accelerator_name: str | None = None


def parse_replica_spec(spec: Json) -> ReplicaSpec:
    """Read `model`, `engine` and `accelerator` of a spec; ManifestError if a rule is broken."""
    accelerator = table(spec, "spec", "accelerator")
    name = text(accelerator, "spec.accelerator", "name", ACCELERATOR_NAME, 63)
    if accelerator:
        required(name, "spec.accelerator.name")
    model_name, architecture = _model(spec)
    return ReplicaSpec(
        model_name=model_name,
        architecture=architecture,
        engine=_engine(table(spec, "spec", "engine")),
        accelerator_name=name,
    )


def _model(spec: Json) -> tuple[str | None, Architecture | None]:
    if spec.get("model") is None:
        return None, None
    model = table(spec, "spec", "model")
    name = text(model, "spec.model", "name", MODEL_NAME, 128)
    given = model.get("architecture") is not None
    if (name is not None) == given:
        got = "both" if given else "neither"
        raise ManifestError(f"spec.model must be exactly one of name and architecture, got {got}")
    if not given:
        return name, None
    return None, _architecture(table(model, "spec.model", "architecture"))


def _architecture(shape: Json) -> Architecture:
    where = "spec.model.architecture"

    def count(name: str, high: int, low: int = 1) -> int | None:
        return integer(shape, where, name, low, high)

    def needed(name: str, high: int, low: int = 1) -> int:
        return int(required(count(name, high, low), f"{where}.{name}"))

    parameters = needed("parameters", 10**14)
    active = count("activeParameters", 10**14) or parameters
    heads, kv_heads = needed("attentionHeads", 10_000), needed("kvHeads", 10_000)
    experts, per_token = count("experts", 100_000), count("expertsPerToken", 100_000)
    expert_parameters = count("expertParameters", 10**14)
    window = count("windowKVValuesPerToken", 10**9)
    _check_order(where, "activeParameters", active, "parameters", parameters)
    _check_order(where, "kvHeads", kv_heads, "attentionHeads", heads)
    _check_order(where, "expertsPerToken", per_token or 0, "experts", experts or INT32)
    _check_order(where, "expertParameters", expert_parameters or 0, "parameters", parameters)
    if (window is None) != (count("windowTokens", 10**8) is None):
        raise ManifestError(
            f"{where}.windowTokens must be given together with windowKVValuesPerToken"
        )
    if len({experts is None, per_token is None, expert_parameters is None}) > 1:
        raise ManifestError(
            f"{where}.experts must be given together with expertsPerToken and expertParameters"
        )
    attention = text(shape, where, "attention", "Standard|Latent", 16) or "Standard"
    return Architecture(
        name="custom",
        layers=needed("layers", 1000),
        hidden_size=needed("hiddenSize", 10**6),
        parameters=float(parameters),
        active_parameters=float(active),
        attention_heads=heads,
        head_size=needed("headSize", 100_000),
        vocabulary_size=needed("vocabularySize", 10**8),
        kv_values_per_token=float(needed("kvValuesPerToken", 10**9, 0)),
        window_kv_values_per_token=float(window or 0),
        window_tokens=count("windowTokens", 10**8) or 0,
        latent_attention=attention == "Latent",
        kv_heads=kv_heads,
        experts=experts or 0,
        experts_per_token=per_token or 0,
        expert_parameters=float(expert_parameters or 0),
        max_context_tokens=count("maxContextTokens", 10**8) or 131_072,
    )


def _check_order(where: str, name: str, value: int, other: str, most: int) -> None:
    if value > most:
        raise ManifestError(f"{where}.{name} must be <= {other} ({most}), got {value}")


def _engine(engine: Json) -> EngineSpec:
    where = "spec.engine"
    sequences = integer(engine, where, "maxSequences", 1, 100_000)
    budget = integer(engine, where, "stepTokenBudget", 1, 10_000_000)
    if sequences is not None and budget is not None and sequences > budget:
        raise ManifestError(
            f"spec.engine.maxSequences must be <= spec.engine.stepTokenBudget ({budget}), "
            f"got {sequences}"
        )
    tensor, pipeline, data = (
        integer(engine, where, name, 1, 1024)
        for name in ("tensorParallel", "pipelineParallel", "dataParallel")
    )
    accelerators = (tensor or 1) * (pipeline or 1) * (data or 1)
    if accelerators > MOST_ACCELERATORS:
        raise ManifestError(
            "spec.engine must be <= 4096 accelerators per replica (tensorParallel x "
            f"pipelineParallel x dataParallel), got {accelerators}"
        )
    memory = integer(engine, where, "memoryUtilizationPercent", 1, 100)
    yields = integer(engine, where, "tokensPerStepPercent", 100, 10_000)
    weights = choice(engine, where, "weightPrecision", PrecisionName)
    cache = choice(engine, where, "kvPrecision", PrecisionName)
    return EngineSpec(
        type=choice(engine, where, "type", EngineType),
        max_sequences=sequences,
        step_token_budget=budget,
        max_context_tokens=integer(engine, where, "maxContextTokens", 1, 10**8),
        memory_utilization=None if memory is None else memory / PERCENT,
        weight_precision=None if weights is None else weights.precision,
        kv_precision=None if cache is None else cache.precision,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        data_parallel=data,
        expert_parallel=flag(engine, where, "expertParallel"),
        tokens_per_step=None if yields is None else yields / PERCENT,
    )
