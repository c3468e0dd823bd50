"""Checks of built-in kinds that clients meet in practice: required fields, selectors, names."""

import re
from typing import Any

from sim_cluster.api.errors import Json, cause
from sim_cluster.api.objects import LABEL_RULE, label_errors
from sim_cluster.api.schema.validation import DUPLICATE, INVALID, REQUIRED, UNSUPPORTED, shown
from sim_cluster.api.selectors import matches_labels

_QUANTITY = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$")
_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_WORKLOADS = frozenset({"deployments", "statefulsets", "replicasets", "daemonsets"})


def _required(field: str, detail: str = "") -> Json:
    return cause(REQUIRED, field, f"Required value: {detail}" if detail else "Required value")


def _invalid(field: str, value: Any, detail: str) -> Json:
    return cause(INVALID, field, f"Invalid value: {shown(value)}: {detail}")


def _not_negative(spec: Json, name: str, path: str) -> list[Json]:
    value = spec.get(name)
    if isinstance(value, int) and value < 0:
        detail = "must be greater than or equal to 0"
        return [_invalid(f"{path}.{name}", value, detail)]
    return []


def _quantities(amounts: Json | None, path: str) -> list[Json]:
    errors = []
    for name, amount in (amounts or {}).items():
        if not _QUANTITY.match(str(amount)):
            detail = (
                "quantities must match the regular expression"
                " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
            errors.append(_invalid(f"{path}[{name}]", amount, detail))
    return errors


def _container_errors(container: Json, path: str) -> list[Json]:
    errors = []
    name = container.get("name")
    if not name:
        errors.append(_required(f"{path}.name"))
    elif not _DNS_LABEL.match(name):
        errors.append(_invalid(f"{path}.name", name, LABEL_RULE))
    if not container.get("image"):
        errors.append(_required(f"{path}.image"))
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        errors += _quantities(resources.get(part), f"{path}.resources.{part}")
    for index, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{index}].containerPort"
        number = port.get("containerPort")
        if not number:
            errors.append(_required(where))
        elif not 0 < number < 65536:
            errors.append(_invalid(where, number, "must be between 1 and 65535, inclusive"))
    return errors


def pod_spec_errors(spec: Json, path: str) -> list[Json]:
    """What is wrong with the spec of a pod or of a template."""
    errors = []
    containers = spec.get("containers")
    if not containers:
        errors.append(_required(f"{path}.containers"))
    names: set[str] = set()
    for index, container in enumerate(containers or ()):
        where = f"{path}.containers[{index}]"
        errors += _container_errors(container, where)
        if container.get("name") in names:
            text = f"Duplicate value: {shown(container['name'])}"
            errors.append(cause(DUPLICATE, f"{where}.name", text))
        names.add(container.get("name", ""))
    policy = spec.get("restartPolicy")
    if policy not in {"Always", "OnFailure", "Never"}:
        text = f'Unsupported value: {shown(policy)}: supported values: "Always", "OnFailure", "Never"'
        errors.append(cause(UNSUPPORTED, f"{path}.restartPolicy", text))
    return errors


def _workload_errors(kind: str, obj: Json) -> list[Json]:
    spec = obj.get("spec") or {}
    errors = _not_negative(spec, "replicas", "spec")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if selector is None:
        errors.append(_required("spec.selector"))
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        detail = f"empty selector is invalid for {kind.lower()}"
        errors.append(_invalid("spec.selector", selector or {}, detail))
    elif not matches_labels(selector, labels):
        detail = "`selector` does not match template `labels`"
        errors.append(_invalid("spec.template.metadata.labels", labels, detail))
    errors += label_errors(labels, "spec.template.metadata.labels")
    return errors + pod_spec_errors(template.get("spec") or {}, "spec.template.spec")


def _service_errors(obj: Json) -> list[Json]:
    spec = obj.get("spec") or {}
    ports = spec.get("ports") or []
    errors = []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        errors.append(_required("spec.ports"))
    for index, port in enumerate(ports):
        number = port.get("port")
        if not isinstance(number, int) or not 0 < number < 65536:
            detail = "must be between 1 and 65535, inclusive"
            errors.append(_invalid(f"spec.ports[{index}].port", number or 0, detail))
        if len(ports) > 1 and not port.get("name"):
            errors.append(_required(f"spec.ports[{index}].name"))
    return errors


def _autoscaler_errors(obj: Json) -> list[Json]:
    spec = obj.get("spec") or {}
    errors = []
    low, high = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if high < 1:
        errors.append(_invalid("spec.maxReplicas", high, "must be greater than 0"))
    if high < low:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(_invalid("spec.maxReplicas", high, detail))
    if not (spec.get("scaleTargetRef") or {}).get("name"):
        errors.append(_required("spec.scaleTargetRef.name"))
    return errors


def _role_errors(obj: Json) -> list[Json]:
    errors = []
    for index, rule in enumerate(obj.get("rules") or ()):
        where = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(_required(f"{where}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            errors.append(_required(f"{where}.apiGroups", detail))
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            errors.append(_required(f"{where}.resources", detail))
    return errors


def _lease_errors(obj: Json) -> list[Json]:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if isinstance(duration, int) and duration <= 0:
        return [_invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return _not_negative(spec, "leaseTransitions", "spec")


def _secret_errors(obj: Json) -> list[Json]:
    return _key_errors(obj.get("data"), "data")


def _key_errors(data: Json | None, field: str) -> list[Json]:
    errors = []
    for key in data or ():
        if not re.match(r"^[-._a-zA-Z0-9]+$", key) or len(key) > 253:
            detail = (
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
                " '[-._a-zA-Z0-9]+')"
            )
            errors.append(_invalid(f"{field}[{key}]", key, detail))
    return errors


def errors_of(group: str, plural: str, kind: str, obj: Json) -> list[Json]:
    """All field errors of a built-in object."""
    if group == "apps" and plural in _WORKLOADS:
        return _workload_errors(kind, obj)
    match plural:
        case "pods":
            return pod_spec_errors(obj.get("spec") or {}, "spec")
        case "services":
            return _service_errors(obj)
        case "horizontalpodautoscalers":
            return _autoscaler_errors(obj)
        case "roles" | "clusterroles":
            return _role_errors(obj)
        case "leases":
            return _lease_errors(obj)
        case "secrets":
            return _secret_errors(obj)
        case "configmaps":
            return _key_errors(obj.get("data"), "data")
        case _:
            return []


def immutable_errors(group: str, plural: str, obj: Json, old: Json) -> list[Json]:
    """Changes of fields that may not change."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    fixed: tuple[str, ...] = ()
    if group == "apps" and plural in {"deployments", "replicasets", "daemonsets"}:
        fixed = ("selector",)
    elif plural == "jobs":
        fixed = ("selector", "completionMode")
    errors = [
        _invalid(f"spec.{name}", spec.get(name), "field is immutable")
        for name in fixed
        if spec.get(name) != before.get(name)
    ]
    if plural in {"secrets", "configmaps"} and old.get("immutable"):
        if obj.get("data") != old.get("data"):
            errors.append(
                cause("FieldValueForbidden", "data",
                      "Forbidden: field is immutable when `immutable` is set")
            )
    if plural in {"rolebindings", "clusterrolebindings"} and obj["roleRef"] != old["roleRef"]:
        names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown_ref = {names.get(key, key): value for key, value in sorted(obj["roleRef"].items())}
        errors.append(_invalid("roleRef", shown_ref, "field is immutable"))
    if plural == "statefulsets":
        errors += _stateful_set_changes(spec, before)
    if plural == "pods":
        errors += _pod_changes(spec, before)
    return errors


_STATEFUL_SET_OPEN = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


def _stateful_set_changes(spec: Json, before: Json) -> list[Json]:
    fixed = (spec.keys() | before.keys()) - set(_STATEFUL_SET_OPEN)
    if all(spec.get(name) == before.get(name) for name in fixed):
        return []
    names = ", ".join(f"'{name}'" for name in _STATEFUL_SET_OPEN[:-1])
    text = (
        f"Forbidden: updates to statefulset spec for fields other than {names} and"
        " 'minReadySeconds' are forbidden"
    )
    return [cause("FieldValueForbidden", "spec", text)]


_POD_OPEN = (
    "activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates",
    "nodeName",
)  # fmt: skip


def _pod_changes(spec: Json, before: Json) -> list[Json]:
    def fixed(pod: Json) -> Json:
        rest = {key: value for key, value in pod.items() if key not in _POD_OPEN}
        for part in ("containers", "initContainers"):
            rest[part] = [
                {key: value for key, value in container.items() if key != "image"}
                for container in pod.get(part) or ()
            ]
        return rest

    if fixed(spec) == fixed(before):
        return []
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only"
        " additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be"
        " set to 1 if it was previously negative)"
    )
    return [cause("FieldValueForbidden", "spec", text)]

