"""Checks of built-in kinds that clients meet in practice: required fields, selectors, names."""

import re
from collections.abc import Callable

from sim_cluster.api.errors import Json, cause
from sim_cluster.api.objects import LABEL_RULE, label_errors
from sim_cluster.api.schema.validation import DUPLICATE, REQUIRED, UNSUPPORTED, invalid_value, shown
from sim_cluster.api.selectors import matches_labels

_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_WORKLOADS = frozenset({"deployments", "statefulsets", "replicasets", "daemonsets"})


def _required(field: str, detail: str = "") -> Json:
    return cause(REQUIRED, field, f"Required value: {detail}" if detail else "Required value")


def _not_negative(spec: Json, name: str, path: str) -> list[Json]:
    value = spec.get(name)
    if isinstance(value, int) and value < 0:
        detail = "must be greater than or equal to 0"
        return [invalid_value(f"{path}.{name}", value, detail)]
    return []


def _container_errors(container: Json, path: str) -> list[Json]:
    errors = []
    name = container.get("name")
    if not name:
        errors.append(_required(f"{path}.name"))
    elif not _DNS_LABEL.match(name):
        errors.append(invalid_value(f"{path}.name", name, LABEL_RULE))
    if not container.get("image"):
        errors.append(_required(f"{path}.image"))
    for index, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{index}].containerPort"
        number = port.get("containerPort")
        if not number:
            errors.append(_required(where))
        elif not 0 < number < 65536:
            errors.append(invalid_value(where, number, "must be between 1 and 65535, inclusive"))
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
        text = (
            f'Unsupported value: {shown(policy)}: supported values: "Always", "OnFailure", "Never"'
        )
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
        errors.append(invalid_value("spec.selector", selector or {}, detail))
    elif not matches_labels(selector, labels):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid_value("spec.template.metadata.labels", labels, detail))
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
            errors.append(invalid_value(f"spec.ports[{index}].port", number or 0, detail))
        if len(ports) > 1 and not port.get("name"):
            errors.append(_required(f"spec.ports[{index}].name"))
    return errors


def _autoscaler_errors(obj: Json) -> list[Json]:
    spec = obj.get("spec") or {}
    errors = []
    low, high = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if high < 1:
        errors.append(invalid_value("spec.maxReplicas", high, "must be greater than 0"))
    if high < low:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(invalid_value("spec.maxReplicas", high, detail))
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
        return [invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return _not_negative(spec, "leaseTransitions", "spec")


def _data_errors(obj: Json) -> list[Json]:
    errors = []
    for key in obj.get("data") or ():
        if not re.match(r"^[-._a-zA-Z0-9]+$", key) or len(key) > 253:
            detail = (
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
                " '[-._a-zA-Z0-9]+')"
            )
            errors.append(invalid_value(f"data[{key}]", key, detail))
    return errors


def _job_errors(obj: Json) -> list[Json]:
    template = (obj.get("spec") or {}).get("template") or {}
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") in {"OnFailure", "Never"}:
        return pod_spec_errors(spec, "spec.template.spec")
    detail = 'valid values: "OnFailure", "Never"'
    return [_required("spec.template.spec.restartPolicy", detail)]


def _event_errors(obj: Json) -> list[Json]:
    involved = (obj.get("involvedObject") or obj.get("regarding") or {}).get("namespace", "")
    if involved in {"", obj["metadata"].get("namespace")}:
        return []
    detail = "does not match event.namespace"
    return [invalid_value("involvedObject.namespace", involved, detail)]


_CHECKS: dict[tuple[str, str], Callable[[Json], list[Json]]] = {
    ("", "pods"): lambda obj: pod_spec_errors(obj.get("spec") or {}, "spec"),
    ("", "services"): _service_errors,
    ("", "secrets"): _data_errors,
    ("", "configmaps"): _data_errors,
    ("", "events"): _event_errors,
    ("events.k8s.io", "events"): _event_errors,
    ("batch", "jobs"): _job_errors,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler_errors,
    ("rbac.authorization.k8s.io", "roles"): _role_errors,
    ("rbac.authorization.k8s.io", "clusterroles"): _role_errors,
    ("coordination.k8s.io", "leases"): _lease_errors,
}


def errors_of(group: str, plural: str, kind: str, obj: Json) -> list[Json]:
    """All field errors of a built-in object."""
    if group == "apps" and plural in _WORKLOADS:
        return _workload_errors(kind, obj)
    check = _CHECKS.get((group, plural))
    return check(obj) if check is not None else []
