"""
Validation of custom objects against their schema, in the words of the real API server.

Only what structural schemas allow: types, required, bounds, lengths, patterns, enums, formats,
list sets and maps, and the logical junctors. CEL rules are in `cel.py`.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from typing import Any

from sim_cluster.api.errors import Json, cause
from sim_cluster.api.schema.formats import format_error
from sim_cluster.api.schema.structural import Node

INVALID, REQUIRED = "FieldValueInvalid", "FieldValueRequired"
UNSUPPORTED, DUPLICATE = "FieldValueNotSupported", "FieldValueDuplicate"
TOO_LONG, TOO_MANY, TYPE_INVALID = (
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
FORBIDDEN, TOO_FEW = "FieldValueForbidden", "FieldValueTooFew"

BLOCKING = frozenset({REQUIRED, UNSUPPORTED, TOO_LONG, TOO_MANY, TYPE_INVALID})
"""Errors after which CEL rules are not evaluated (`hasBlockingErr` of apiextensions-apiserver)."""


def shown(value: Any) -> str:
    """A value as messages show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)):
        return str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid_value(path: str, value: Any, detail: str) -> Json:
    """A field error with the offending value."""
    return cause(INVALID, path, f"Invalid value: {shown(value)}: {detail}")


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """Compile as Go does: there `$` is the end of the text, not also before a last line break."""
    ends = text.endswith("$") and not text.endswith(r"\$")
    return re.compile((text[:-1] + r"\Z" if ends else text).replace(r"\z", r"\Z"))


def validate(value: Any, node: Node, path: str = "") -> list[Json]:
    """All field errors of a value, in the order of its fields."""
    errors: list[Json] = []
    _validate(value, node, path, errors)
    return errors


def _validate(value: Any, node: Node, path: str, errors: list[Json]) -> None:
    if node.is_free or (value is None and node.is_nullable):
        return
    if node.is_int_or_string:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            errors.append(_wrong_type(value, "integer,string", path))
            return
    elif node.kind and not _has_type(value, node.kind):
        errors.append(_wrong_type(value, node.kind, path))
        return
    if node.is_restricted:
        _validate_keywords(value, node, path, errors)


def _validate_keywords(value: Any, node: Node, path: str, errors: list[Json]) -> None:
    _validate_enum(value, node.schema, path, errors)
    _junctors(value, node.schema, path, errors)
    if isinstance(value, str):
        _validate_string(value, node.schema, path, errors)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _validate_number(value, node.schema, path, errors)
    elif isinstance(value, list):
        _validate_list(value, node, path, errors)
    elif isinstance(value, dict):
        _validate_object(value, node, path, errors)


def _has_type(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case _:
            return isinstance(value, (int, float)) and not isinstance(value, bool)


def json_type(value: Any) -> str:
    """The type of a value as messages name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _wrong_type(value: Any, kind: str, path: str) -> Json:
    got = json_type(value)
    detail = f'{path} in body must be of type {kind}: "{got}"'
    shown_value = f'"{got}"'
    return cause(TYPE_INVALID, path, f"Invalid value: {shown_value}: {detail}")


def _validate_enum(value: Any, schema: Json, path: str, errors: list[Json]) -> None:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        names = ", ".join(json.dumps(v if isinstance(v, str) else shown(v)) for v in allowed)
        text = f"Unsupported value: {shown(value)}: supported values: {names}"
        errors.append(cause(UNSUPPORTED, path, text))


def _validate_string(value: str, schema: Json, path: str, errors: list[Json]) -> None:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = schema.get("pattern")
    if longest is not None and len(value) > longest:
        unit = "byte" if longest == 1 else "bytes"
        errors.append(cause(TOO_LONG, path, f"Too long: may not be more than {longest} {unit}"))
    elif shortest is not None and len(value) < shortest:
        detail = f"{path} in body should be at least {shortest} chars long"
        errors.append(invalid_value(path, value, detail))
    elif pattern is not None and not _pattern(pattern).search(value):
        errors.append(invalid_value(path, value, f"{path} in body should match '{pattern}'"))
    wrong = format_error(value, schema.get("format", ""))
    if wrong:
        detail = f"{path} in body must be of type {schema['format']}: {shown(value)}"
        errors.append(cause(TYPE_INVALID, path, f"Invalid value: {shown(value)}: {detail}"))


def _validate_number(value: float, schema: Json, path: str, errors: list[Json]) -> None:
    low, high, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        relation = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        errors.append(
            invalid_value(path, value, f"{path} in body should be {relation} {shown(high)}")
        )
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        relation = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        errors.append(
            invalid_value(path, value, f"{path} in body should be {relation} {shown(low)}")
        )
    if factor is not None and value % factor != 0:
        detail = f"{path} in body should be a multiple of {shown(factor)}"
        errors.append(invalid_value(path, value, detail))


def _too_many(path: str, count: int, most: int) -> Json:
    unit = "item" if most == 1 else "items"
    return cause(TOO_MANY, path, f"Too many: {count}: must have at most {most} {unit}")


def _validate_list(value: list[Any], node: Node, path: str, errors: list[Json]) -> None:
    schema = node.schema
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        errors.append(_too_many(path, len(value), most))
    if least is not None and len(value) < least:
        detail = f"{path} in body should have at least {least} items"
        errors.append(invalid_value(path, len(value), detail))
    if node.items is not None:
        for index, item in enumerate(value):
            _validate(item, node.items, f"{path}[{index}]", errors)


def _validate_object(value: Json, node: Node, path: str, errors: list[Json]) -> None:
    schema = node.schema
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        errors.append(_too_many(path, len(value), most))
    if least is not None and len(value) < least:
        detail = f"{path} in body should have at least {least} properties"
        errors.append(invalid_value(path, len(value), detail))
    for name in schema.get("required") or ():
        if name not in value:
            where = f"{path}.{name}" if path else name
            errors.append(cause(REQUIRED, where, "Required value"))
    for name, member in value.items():
        if path == "" and name in {"metadata", "apiVersion", "kind"}:
            continue
        child = node.member(name)
        if child is not None:
            _validate(member, child, f"{path}.{name}" if path else name, errors)


def list_errors(value: Any, node: Node, path: str = "") -> list[Json]:
    """Duplicates in lists that are declared sets or maps."""
    errors: list[Json] = []
    if isinstance(value, list):
        seen: Counter[str] = Counter()
        for index, item in enumerate(value):
            key = item
            if node.list_type == "map" and isinstance(item, dict):
                key = {name: item.get(name) for name in node.list_keys}
            text = shown(key)
            if node.list_type in {"map", "set"} and seen[text] == 1:
                where = f"{path}[{index}]"
                errors.append(cause(DUPLICATE, where, f"Duplicate value: {text}"))
            seen[text] += 1
            if node.items is not None:
                errors += list_errors(item, node.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(member, (dict, list)):
                continue
            child = node.member(name)
            if child is not None and child.ref == "":
                errors += list_errors(member, child, f"{path}.{name}" if path else name)
    return errors


def _matches(value: Any, schema: Json, path: str) -> bool:
    return not validate(value, Node(schema), path)


def _junctors(value: Any, schema: Json, path: str, errors: list[Json]) -> None:
    where = path or "<nil>"
    any_of = schema.get("anyOf")
    if any_of and not any(_matches(value, part, path) for part in any_of):
        detail = f"{path} in body must validate at least one schema (anyOf)"
        errors.append(invalid_value(where, "", detail))
    if one_of := schema.get("oneOf"):
        fitting = sum(_matches(value, part, path) for part in one_of)
        if fitting != 1:
            found = "Found none valid" if fitting == 0 else f"Found {fitting} valid alternatives"
            detail = f"{path} in body must validate one and only one schema (oneOf). {found}"
            errors.append(invalid_value(where, "", detail))
    for part in schema.get("allOf") or ():
        _validate(value, Node(part), path, errors)
    if "not" in schema and _matches(value, schema["not"], path):
        detail = f"{path} in body must not validate the schema (not)"
        errors.append(invalid_value(where, "", detail))
