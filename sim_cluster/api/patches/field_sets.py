"""
Sets of fields, as `metadata.managedFields` holds them.

A field is a tuple of path elements in the wire's own notation: `f:NAME` (a property), `k:{...}` (an
item of a list by its keys), `v:...` (a member of a set). A set of fields is a frozenset of them.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

from sim_cluster.api.errors import Json
from sim_cluster.api.schema.structural import Node

Field = tuple[str, ...]
Fields = frozenset[Field]

_NEVER_OWNED = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation",
                "managedFields", "resourceVersion", "deletionTimestamp",
                "deletionGracePeriodSeconds",
            )
        ),
    }
)  # fmt: skip
"""Fields that belong to the server."""


def item_element(item: Any, node: Node) -> str:
    """The path element of a list item: its keys (with their defaults), or its value."""
    if node.list_type == "set":
        return "v:" + orjson.dumps(item).decode()
    keys = {}
    for name in sorted(node.list_keys):
        if isinstance(item, dict) and name in item:
            keys[name] = item[name]
        elif node.items is not None:
            child = node.items.member(name)
            if child is not None and child.has_default:
                keys[name] = child.default
    return "k:" + orjson.dumps(keys).decode()


_PRESENT_WHEN_EMPTY = frozenset(
    {"f:metadata", "f:spec", "f:status", "f:template", "f:strategy", "f:updateStrategy"}
    | {"f:containers", "f:scaleTargetRef"}
)
"""Built-in parts that exist in an empty object, so that nobody is the one who added them."""


def applied_fields(obj: Any, node: Node) -> Fields:
    """The fields that an applied configuration names."""
    found: set[Field] = set()
    _collect(obj, node, (), found)
    return frozenset(found - _NEVER_OWNED)


def all_fields(obj: Any, node: Node) -> Fields:
    """All fields of an object, those that hold others included."""
    found: set[Field] = set()
    _collect_all(obj, node, (), found)
    return frozenset(found - _NEVER_OWNED)


def _collect(value: Any, node: Node | None, path: Field, found: set[Field]) -> None:
    if isinstance(value, dict) and value and (node is None or not node.is_atomic):
        for key, member in value.items():
            child = node.member(key) if node is not None else None
            deeper = (*path, f"f:{key}")
            if node is None or key not in node.property_names:
                found.add(deeper)
            _collect(member, child, deeper, found)
        return
    if isinstance(value, list) and node is not None and not node.is_atomic and node.items:
        for item in value:
            deeper = (*path, item_element(item, node))
            found.add(deeper)
            if node.list_type == "map":
                _collect(item, node.items, deeper, found)
        return
    found.add(path)


def _collect_all(value: Any, node: Node | None, path: Field, found: set[Field]) -> None:
    if path and not (path[-1] in _PRESENT_WHEN_EMPTY and node is not None and node.ref):
        found.add(path)
    if isinstance(value, dict) and (node is None or not node.is_atomic):
        for key, member in value.items():
            element = f"f:{key}"
            if isinstance(member, (dict, list)) or element in _PRESENT_WHEN_EMPTY:
                child = node.member(key) if node is not None else None
                _collect_all(member, child, (*path, element), found)
            else:
                found.add((*path, element))
    elif isinstance(value, list) and node is not None and not node.is_atomic and node.items:
        if path[-1] == "f:containers":
            found.discard(path)
        for item in value:
            element = item_element(item, node)
            if node.list_type == "map":
                _collect_all(item, node.items, (*path, element), found)
            else:
                found.add((*path, element))


def to_wire(fields: Iterable[Field]) -> Json:
    """The nested form of a set of fields (`fieldsV1`)."""
    fields = frozenset(fields)
    root: Json = {}
    for field in sorted(fields):
        level = root
        for element in field:
            level = level.setdefault(element, {})
    for field in fields:
        level = root
        for element in field:
            level = level[element]
        if level:
            level["."] = {}
    return root


def from_wire(wire: Json) -> Fields:
    """The set of fields of a nested form."""
    return _parsed(orjson.dumps(wire))


@lru_cache(maxsize=2048)
def _parsed(text: bytes) -> Fields:
    found: set[Field] = set()
    _unfold(orjson.loads(text), (), found)
    return frozenset(found)


def _unfold(level: Json, path: Field, found: set[Field]) -> None:
    if not level and path:
        found.add(path)
    for element, deeper in level.items():
        if element == ".":
            found.add(path)
        else:
            _unfold(deeper, (*path, element), found)


def shown(field: Field) -> str:
    """A field as messages write it: `.spec.containers[name="app"].image`."""
    text = ""
    for element in field:
        kind, rest = element[0], element[2:]
        if kind == "f":
            text += f".{rest}"
        elif kind == "v":
            text += f"[={rest}]"
        else:
            keys = orjson.loads(rest)
            inner = ",".join(f"{name}={orjson.dumps(keys[name]).decode()}" for name in keys)
            text += f"[{inner}]"
    return text


def value_at(obj: Any, field: Field, node: Node | None) -> Any:
    """The value of a field; `ABSENT` when the object does not have it."""
    for element in field:
        kind, rest = element[0], element[2:]
        if kind == "f":
            if not isinstance(obj, dict) or rest not in obj:
                return ABSENT
            obj = obj[rest]
            node = node.member(rest) if node is not None else None
            continue
        if not isinstance(obj, list) or node is None:
            return ABSENT
        same = [item for item in obj if item_element(item, node) == element]
        if not same:
            return ABSENT
        obj, node = same[0], node.items
    return obj


ABSENT = object()
"""Stands for a field that is not there."""
