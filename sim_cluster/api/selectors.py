"""Label and field selectors: text of a query parameter -> a predicate on records."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sim_cluster.api.errors import Json, bad_request
from sim_cluster.api.storage import Record

Requirement = Callable[[Mapping[str, str]], bool]

_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUALS = re.compile(r"^\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*$")
_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")

FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "events"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("", "secrets"): ("type",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
}
"""Fields that selectors may use, besides name and namespace, by group and resource."""

_FALSE_WHEN_ABSENT = frozenset({"spec.unschedulable", "spec.hostNetwork"})


def field_text(obj: Json, path: str) -> str:
    """The value of a dotted path as selectors compare it; empty when absent."""
    node: Any = obj
    if path == "source":
        source = obj.get("source") or {}
        return str(source.get("component") or obj.get("reportingComponent") or "")
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if isinstance(node, bool):
        return "true" if node else "false"
    if node is None:
        return "false" if path in _FALSE_WHEN_ABSENT else ""
    return str(node)


def selectable(obj: Json, paths: tuple[str, ...]) -> Mapping[str, str]:
    """The selectable fields of an object."""
    return {path: field_text(obj, path) for path in paths}


def _split_requirements(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def _check_value(value: str, text: str) -> None:
    if len(value) > 63 or not _LABEL_VALUE.match(value):
        raise bad_request(
            f'unable to parse requirement: values[0][{text}]: Invalid value: "{value}": a valid'
            " label must be an empty string or consist of alphanumeric characters, '-', '_' or"
            " '.', and must start and end with an alphanumeric character"
        )


def _label_requirement(text: str) -> Requirement:
    if match := _SET.match(text):
        key, operator = match[1], match[2]
        values = {value.strip() for value in match[3].split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUALS.match(text):
        key, operator, value = match[1], match[2], match[3]
        _check_value(value, key)
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    key = text.strip()
    if re.search(r"[\s=!(){}<>]", key.removeprefix("!")):
        raise bad_request(f"unable to parse requirement: found {key!r}, expected: a label selector")
    if key.startswith("!"):
        return lambda labels: key[1:].strip() not in labels
    return lambda labels: key in labels


def _field_requirement(text: str, allowed: tuple[str, ...]) -> Requirement:
    match = _EQUALS.match(text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    key, operator, value = match[1], match[2], match[3]
    if key not in allowed and key not in {"metadata.name", "metadata.namespace"}:
        if not allowed:
            raise bad_request(
                f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        raise bad_request(f"field label not supported: {key}")
    if operator == "!=":
        return lambda fields: fields.get(key, "") != value
    return lambda fields: fields.get(key, "") == value


class Selector:
    """Both selectors of one request."""

    def __init__(self, *, labels: str, fields: str, selectable_fields: tuple[str, ...]) -> None:
        self._labels = [_label_requirement(part) for part in _split_requirements(labels)]
        parts = _split_requirements(fields)
        self._fields = [_field_requirement(part, selectable_fields) for part in parts]
        self._needs_name = "metadata." in fields
        self.is_empty = not self._labels and not self._fields

    def matches(self, record: Record) -> bool:
        """Whether a record is selected."""
        if not all(requirement(record.labels) for requirement in self._labels):
            return False
        if not self._fields:
            return True
        fields = record.fields
        if self._needs_name:
            names = {"metadata.name": record.name, "metadata.namespace": record.namespace}
            fields = {**fields, **names}
        return all(requirement(fields) for requirement in self._fields)


def matches_labels(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a `LabelSelector` object selects a set of labels; an absent one selects nothing."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_expression_holds(e, labels) for e in selector.get("matchExpressions") or ())


def _expression_holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def selector_text(selector: Json | None) -> str:
    """A LabelSelector written as the text of a query."""
    if not selector:
        return ""
    labels = selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        operator = expression["operator"]
        words = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(words[operator])
    return ",".join(parts)
