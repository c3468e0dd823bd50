"""What a client sent, checked against the schema: unknown, duplicate and mistyped fields."""

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


def _check_types(resource: Resource, value: Any, node: Node, path: str) -> None:
    """Refuse a built-in object whose values the Go types could not hold."""
    kind = node.kind
    if kind == "" or node.is_free:
        return
    if isinstance(value, dict) and kind == "object":
        for name, member in value.items():
            child = node.member(name)
            if child is not None and member is not None:
                _check_types(resource, member, child, f"{path}.{name}" if path else name)
        return
    if isinstance(value, list) and kind == "array":
        if node.items is not None:
            for item in value:
                _check_types(resource, item, node.items, path)
        return
    got = json_type(value)
    if got == kind or (kind == "number" and got == "integer"):
        return
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return
    wanted = _GO_TYPES.get(kind, kind)
    raise bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}:'
        f" json: cannot unmarshal {got if got != 'boolean' else 'bool'} into Go struct field"
        f" {resource.kind}.{path} of type {wanted}"
    )


def complete_custom(resource: Resource, obj: Json, node: Node, old: Json | None) -> None:
    """Default a custom object and check it: schema first, then its CEL rules."""
    apply_defaults(obj, node)
    errors = validate(obj, node) + list_errors(obj, node)
    if not any(error["reason"] in BLOCKING for error in errors):
        errors += cel.evaluate(obj, node, old)
    elif cel.has_rules(node):
        errors.append(cause("FieldValueInvalid", "<nil>", f"Invalid value: null: {NOT_CHECKED}"))
    if old is not None and errors:
        errors = _not_ratcheted(errors, obj, old)
    if errors:
        raise invalid(resource.group, resource.kind, obj["metadata"]["name"], errors)


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
