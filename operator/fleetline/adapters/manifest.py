"""
ServingFleet JSON to what the loop knows, re-validated: old objects and older CRDs come here too.

The rules are those of `crds/servingfleets.yaml`, and so are the messages that its CEL rules print.
"""

import calendar
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fleetline.adapters.durations import parse_duration_s
from fleetline.adapters.fields import Json, choice, integer, required, rows, shown, table, text
from fleetline.adapters.replica_spec import ReplicaSpec, parse_replica_spec
from fleetline.control.fleet import Fleet, Mode, TargetReference
from fleetline.errors import ManifestError
from fleetline.model.objective import Metric, Objective
from fleetline.policy.behavior import (
    SCALE_DOWN,
    SCALE_UP,
    Behavior,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)

GROUP: Final = "fleetline.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "servingfleets"
KIND: Final = "ServingFleet"
MOST_REPLICAS: Final = 10_000
MOST_TARGET_S: Final = 86_400.0
LONGEST_TARGET: Final = 80

NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
API_VERSION: Final = rf"({NAME}/)?v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?"
TARGET_KIND: Final = r"[A-Z][A-Za-z0-9]*"
LABEL: Final = r"[a-zA-Z_][a-zA-Z0-9_]*"
METRIC_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SERVED_NAME: Final = (
    r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?(:[A-Za-z0-9][A-Za-z0-9._-]*)?"
)
OWN_LABELS: Final = ("namespace", "pod", "le")


class ArrivalSource(StrEnum):
    """Who counts arriving requests."""

    ENGINE = "Engine"
    GATEWAY = "Gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSpec:
    """Which series belong to a fleet, as far as its owner says."""

    model_label: str | None = None
    model_name: str | None = None
    arrivals_counter: str | None = None
    """A gateway's counter; None: the engines' own series."""
    arrivals_label: str | None = None
    arrivals_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetObject:
    """One ServingFleet, understood."""

    fleet: Fleet
    replica: ReplicaSpec
    metrics: MetricsSpec
    status: Json = field(default_factory=dict)


def identity_of(body: Json) -> tuple[str, str, str]:
    """Return (namespace, name, uid) of any object, without judging the rest of it."""
    metadata = body.get("metadata") or {}
    return (
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
        str(metadata.get("uid", "")),
    )


def parse(body: Json) -> FleetObject:
    """
    Understand a ServingFleet completely.

    Raises
    ------
    ManifestError
        If any field breaks a rule: `<where> must be <rule>, got <value>`.
    """
    metadata = table(body, "", "metadata")
    spec = table(body, "", "spec")
    most = required(integer(spec, "spec", "maxReplicas", 1, MOST_REPLICAS), "spec.maxReplicas")
    least = integer(spec, "spec", "minReplicas", 1, MOST_REPLICAS) or 1
    if least > most:
        raise ManifestError(f"spec.minReplicas must be <= spec.maxReplicas ({most}), got {least}")
    namespace, name, uid = identity_of(body)
    fleet = Fleet(
        namespace=namespace,
        name=name,
        uid=uid,
        generation=int(metadata.get("generation") or 0),
        created_s=parse_time_s(metadata.get("creationTimestamp")) or 0.0,
        target=_target(table(spec, "spec", "scaleTargetRef")),
        objectives=_objectives(spec),
        min_replicas=least,
        max_replicas=most,
        queue_drain_s=float(integer(spec, "spec", "queueDrainSeconds", 1, 86_400) or 60),
        mode=choice(spec, "spec", "mode", Mode) or Mode.AUTO,
        behavior=_behavior(table(spec, "spec", "behavior")),
    )
    status = body.get("status")
    return FleetObject(
        fleet=fleet,
        replica=parse_replica_spec(spec),
        metrics=_metrics(table(spec, "spec", "metrics")),
        status=status if isinstance(status, Mapping) else {},
    )


def parse_time_s(text_: Any) -> float | None:
    """Unix time of an RFC 3339 timestamp as Kubernetes writes it; None if it is none. [s]"""
    if not isinstance(text_, str):
        return None
    for pattern in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ"):
        try:
            return float(calendar.timegm(time.strptime(text_, pattern)))
        except ValueError:
            continue
    return None


def _target(reference: Json) -> TargetReference:
    where = "spec.scaleTargetRef"
    api_version = text(reference, where, "apiVersion", API_VERSION, 128) or "apps/v1"
    kind = required(text(reference, where, "kind", TARGET_KIND, 63), f"{where}.kind")
    scalable = (
        not (api_version == "apps/v1" and kind == "DaemonSet")
        and not (api_version == "v1" and kind != "ReplicationController")
        and api_version != "batch/v1"
    )
    if not scalable:
        raise ManifestError(
            f"{where}.kind must be a kind that has a scale subresource, such as Deployment, "
            f"StatefulSet or LeaderWorkerSet, got {kind} of {api_version}"
        )
    name = required(text(reference, where, "name", NAME, 253), f"{where}.name")
    return TargetReference(api_version=api_version, kind=kind, name=name)


def _objectives(spec: Json) -> tuple[Objective, ...]:
    listed = required(rows(spec, "spec", "objectives", 8), "spec.objectives")
    objectives = []
    for index, row in enumerate(listed):
        where = f"spec.objectives[{index}]"
        objectives.append(
            Objective(
                metric=required(choice(row, where, "metric", Metric), f"{where}.metric"),
                percentile=integer(row, where, "percentile", 50, 99) or 95,
                target_s=_target_s(row, f"{where}.target"),
            )
        )
    if len({(one.metric, one.percentile) for one in objectives}) < len(objectives):
        raise ManifestError("spec.objectives must be unique by metric and percentile")
    return tuple(objectives)


def _target_s(row: Json, where: str) -> float:
    """Read a duration from above zero to a day. [s]"""
    value = required(row.get("target"), where)
    if not isinstance(value, str):
        raise ManifestError(f"{where} must be a string, got {shown(value)}")
    try:
        target_s = parse_duration_s(where, value)
    except ManifestError:
        target_s = 0.0
    if not 0 < target_s <= MOST_TARGET_S:
        told = value if len(value) <= LONGEST_TARGET else f"{value[:LONGEST_TARGET]}..."
        raise ManifestError(
            f"{where} must be a duration above zero and at most 24h, whole numbers with units, "
            f"such as 500ms or 2s, got {told}"
        )
    return target_s


def _behavior(behavior: Json) -> Behavior:
    return Behavior(
        scale_up=_rules(behavior, "scaleUp", SCALE_UP),
        scale_down=_rules(behavior, "scaleDown", SCALE_DOWN),
    )


def _rules(behavior: Json, name: str, default: ScalingRules) -> ScalingRules:
    where = f"spec.behavior.{name}"
    rules = table(behavior, "spec.behavior", name)
    window = integer(rules, where, "stabilizationWindowSeconds", 0, 3600)
    given = rows(rules, where, "policies", 8)
    policies = tuple(
        _policy(row, f"{where}.policies[{index}]") for index, row in enumerate(given or ())
    )
    return ScalingRules(
        stabilization_window_s=default.stabilization_window_s if window is None else float(window),
        policies=policies or default.policies,
        select_policy=choice(rules, where, "selectPolicy", SelectPolicy) or SelectPolicy.MAX,
    )


def _policy(row: Json, where: str) -> ScalingPolicy:
    return ScalingPolicy(
        required(choice(row, where, "type", PolicyType), f"{where}.type"),
        required(integer(row, where, "value", 1, 1_000_000), f"{where}.value"),
        float(required(integer(row, where, "periodSeconds", 1, 1800), f"{where}.periodSeconds")),
    )


def _metrics(metrics: Json) -> MetricsSpec:
    where = "spec.metrics"
    arrivals = table(metrics, where, "arrivals")
    counter: str | None = None
    if arrivals:
        inside = f"{where}.arrivals"
        source = required(choice(arrivals, inside, "source", ArrivalSource), f"{inside}.source")
        counter = text(arrivals, inside, "counter", METRIC_NAME, 128)
        if source is ArrivalSource.GATEWAY and counter is None:
            raise ManifestError(f"{inside}.counter must be given when source is Gateway")
    return MetricsSpec(
        model_label=_label(metrics, where),
        model_name=text(metrics, where, "modelName", SERVED_NAME, 128),
        arrivals_counter=counter,
        arrivals_label=_label(arrivals, f"{where}.arrivals"),
        arrivals_name=text(arrivals, f"{where}.arrivals", "modelName", SERVED_NAME, 128),
    )


def _label(parent: Json, where: str) -> str | None:
    label = text(parent, where, "modelLabel", LABEL, 63)
    if label is not None and (label.startswith("__") or label in OWN_LABELS):
        raise ManifestError(
            f"{where}.modelLabel must be a label that Fleetline does not use itself "
            f"(__*, namespace, pod, le), got {label}"
        )
    return label
