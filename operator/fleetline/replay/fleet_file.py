"""A ServingFleet manifest as far as a replay needs it: what serves, what has to hold, how far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fleetline.adapters.catalog import Catalog
from fleetline.adapters.durations import parse_duration_s
from fleetline.errors import ManifestError
from fleetline.model.hardware import Precision
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.policy.behavior import (
    Behavior,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)

PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFile:
    """One fleet as its owner describes it."""

    replica: Replica
    objectives: tuple[Objective, ...]
    min_replicas: int = 1
    max_replicas: int | None = None
    """None: as many as a replay may need."""
    queue_drain_s: float = 60.0
    behavior: Behavior = field(default_factory=Behavior)
    price_usd_per_hour: float | None = None


def read_fleet_file(path: Path, catalog: Catalog, accelerator: str | None) -> FleetFile:
    """
    Read the first ServingFleet of a file; `accelerator` stands in where the manifest names none.

    Raises
    ------
    ManifestError
        If there is none, or what a replay needs is missing.
    """
    try:
        documents = list(yaml.safe_load_all(path.read_text("utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise ManifestError(f"cannot read ServingFleet from {path}: {error}") from error
    manifest = next(
        (one for one in documents if isinstance(one, dict) and one.get("kind") == "ServingFleet"),
        None,
    )
    if manifest is None:
        raise ManifestError(f"{path} must hold a ServingFleet, got none")
    spec: Mapping[str, Any] = manifest.get("spec") or {}
    name = _mapping(spec, "accelerator").get("name") or accelerator
    if name is None:
        raise ManifestError("--accelerator must be given if spec.accelerator is not, got neither")
    return FleetFile(
        replica=_replica(spec, catalog, str(name)),
        objectives=_objectives(spec.get("objectives")),
        min_replicas=int(spec.get("minReplicas", 1)),
        max_replicas=int(spec["maxReplicas"]) if "maxReplicas" in spec else None,
        queue_drain_s=float(spec.get("queueDrainSeconds", 60)),
        behavior=_behavior(_mapping(spec, "behavior")),
        price_usd_per_hour=catalog.price_usd_per_hour(str(name)),
    )


def _mapping(owner: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = owner.get(key) or {}
    if not isinstance(value, dict):
        raise ManifestError(f"spec.{key} must be an object, got {value!r}")
    return value


def _replica(spec: Mapping[str, Any], catalog: Catalog, accelerator: str) -> Replica:
    model = _mapping(spec, "model").get("name")
    if not model:
        raise ManifestError(f"spec.model.name must be a catalogue name in a replay, got {model!r}")
    engine = _mapping(spec, "engine")
    weights = engine.get("weightPrecision")
    return Replica(
        architecture=catalog.architecture(str(model)),
        accelerator=catalog.accelerator(accelerator),
        tensor_parallel=int(engine.get("tensorParallel", 1)),
        pipeline_parallel=int(engine.get("pipelineParallel", 1)),
        data_parallel=int(engine.get("dataParallel", 1)),
        weight_precision=(
            Precision(str(weights).lower()) if weights else catalog.weight_precision(str(model))
        ),
        kv_precision=Precision(str(engine.get("kvPrecision", "bf16")).lower()),
        max_sequences=int(engine.get("maxSequences", 256)),
        step_token_budget=int(engine.get("stepTokenBudget", 8192)),
        memory_utilization=float(engine.get("memoryUtilizationPercent", 90)) / PERCENT,
        tokens_per_step=float(engine.get("tokensPerStepPercent", 100)) / PERCENT,
    )


def _objectives(given: Any) -> tuple[Objective, ...]:
    if not isinstance(given, Sequence) or not given:
        raise ManifestError(f"spec.objectives must have at least one entry, got {given!r}")
    return tuple(
        Objective(
            metric=_metric(number, one.get("metric")),
            percentile=int(one.get("percentile", 95)),
            target_s=parse_duration_s(f"spec.objectives[{number}].target", str(one.get("target"))),
        )
        for number, one in enumerate(given)
    )


def _metric(number: int, name: Any) -> Metric:
    if name not in set(Metric):
        raise ManifestError(
            f"spec.objectives[{number}].metric must be one of {', '.join(Metric)}, got {name!r}"
        )
    return Metric(name)


def _behavior(given: Mapping[str, Any]) -> Behavior:
    default = Behavior()
    return Behavior(
        scale_up=_rules(given.get("scaleUp") or {}, default.scale_up),
        scale_down=_rules(given.get("scaleDown") or {}, default.scale_down),
    )


def _rules(given: Mapping[str, Any], default: ScalingRules) -> ScalingRules:
    policies = given.get("policies")
    return ScalingRules(
        stabilization_window_s=float(
            given.get("stabilizationWindowSeconds", default.stabilization_window_s)
        ),
        policies=default.policies
        if policies is None
        else tuple(
            ScalingPolicy(PolicyType(one["type"]), int(one["value"]), float(one["periodSeconds"]))
            for one in policies
        ),
        select_policy=SelectPolicy(given.get("selectPolicy", default.select_policy)),
    )
