"""What a client sent, checked against the schema: unknown, duplicate and mistyped fields."""

import re
from typing import Any

from sim_cluster.api.calls import Call
from sim_cluster.api.errors import Json, bad_request, cause, invalid
from sim_cluster.api.resources import Resource
from sim_cluster.api.schema import cel
from sim_cluster.api.schema.defaulting import apply_defaults
from sim_cluster.api.schema.pruning import drop_nulls, prune
from sim_cluster.api.schema.structural import Node
from sim_cluster.api.schema.validation import BLOCKING, json_type, list_errors, validate

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation"
)


def clean(call: Call, obj: Json, node: Node, duplicates: list[str]) -> list[str]:
    """
    Drop unknown fields and needless nulls from an object, in place.

    Returns the complaints, which `fieldValidation` turns into an error, warnings, or nothing.
    """
    unknown = prune(obj, node)
    drop_nulls(obj, node)
    if call.resource.custom is None:
        _check_types(call.resource, obj, node, "")
    if call.field_validation == "Ignore":
        return []
    complaints = [f'unknown field "{path}"' for path in unknown]
    return complaints + [f'duplicate field "{path}"' for path in duplicates]


def judge(call: Call, complaints: list[str]) -> None:
    """Refuse or warn of what `clean` found in a whole object."""
    if not complaints:
        return
    if call.field_validation == "Strict":
        kind, version = call.resource.kind, call.resource.version
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}:'
            f" strict decoding error: {', '.join(complaints)}"
        )
    call.warnings.extend(complaints)


_GO_TYPES = {"integer": "int32", "string": "string", "boolean": "bool", "number": "float64"}


QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_QUANTITY = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$")


def _quantity(resource: Resource, value: Any) -> str:
    text = str(value)
    if not _QUANTITY.match(text):
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a'
            f" {resource.kind}: quantities must match the regular expression"
            " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return text


def _check_types(resource: Resource, value: Any, node: Node, path: str) -> None:
    """Refuse a built-in object whose values the Go types could not hold."""
    if node.kind == "" or node.is_free:
        return
    if isinstance(value, dict) and node.kind == "object":
        _check_members(resource, value, node, path)
    elif isinstance(value, list) and node.kind == "array":
        items = node.items
        for item in value if items is not None else ():
            _check_types(resource, item, items or node, path)
    elif not _fits(value, node.kind):
        got, wanted = json_type(value), _GO_TYPES.get(node.kind, node.kind)
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a'
            f" {resource.kind}: json: cannot unmarshal {'bool' if got == 'boolean' else got}"
            f" into Go struct field {resource.kind}.{path} of type {wanted}"
        )


def _check_members(resource: Resource, value: Json, node: Node, path: str) -> None:
    for name, member in value.items():
        child = node.member(name)
        if child is not None and child.ref == QUANTITY:
            value[name] = _quantity(resource, member)
        elif child is not None and member is not None:
            _check_types(resource, member, child, f"{path}.{name}" if path else name)


def _fits(value: Any, kind: str) -> bool:
    got = json_type(value)
    if got == kind or (kind == "number" and got == "integer"):
        return True
    return kind == "integer" and isinstance(value, float) and value.is_integer()


def complete_custom(resource: Resource, obj: Json, node: Node, old: Json | None) -> None:
    """Default a custom object and check it: schema first, then its CEL rules."""
    apply_defaults(obj, node)
    errors = validate(obj, node) + list_errors(obj, node) + _scale_errors(resource, obj)
    if not any(error["reason"] in BLOCKING for error in errors):
        errors += cel.evaluate(obj, node, old)
    elif cel.has_rules(node):
        errors.append(cause("FieldValueInvalid", "<nil>", f"Invalid value: null: {NOT_CHECKED}"))
    if old is not None and errors:
        errors = _not_ratcheted(errors, obj, old)
    if errors:
        raise invalid(resource.group, resource.kind, obj["metadata"]["name"], errors)


def _scale_errors(resource: Resource, obj: Json) -> list[Json]:
    scale = ((resource.custom or {}).get("subresources") or {}).get("scale")
    if scale is None:
        return []
    path = scale["specReplicasPath"]
    replicas = _at(obj, path.lstrip("."))
    if isinstance(replicas, int) and replicas < 0:
        text = f"Invalid value: {replicas}: should be a non-negative integer"
        return [{"reason": "FieldValueInvalid", "message": text, "field": path}]
    return []


def _not_ratcheted(errors: list[Json], obj: Json, old: Json) -> list[Json]:
    """Errors at places that changed: what was wrong before and stays the same is let through."""
    real = [error for error in errors if error["field"] != "<nil>"]
    kept = [e for e in real if _at(obj, e["field"]) != _at(old, e["field"]) or _is_absent(obj, e)]
    return errors if kept else []


def _is_absent(obj: Json, error: Json) -> bool:
    return error["reason"] == "FieldValueRequired" and _at(obj, error["field"]) is None


def _at(obj: Any, path: str) -> Any:
    for part in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(obj, dict):
            obj = obj.get(part)
        elif isinstance(obj, list) and part.isdigit() and int(part) < len(obj):
            obj = obj[int(part)]
        else:
            return None
    return obj
