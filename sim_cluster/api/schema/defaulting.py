"""Defaults that a CRD's schema gives; those of the built-in kinds are in `builtin/defaults.py`."""

from copy import deepcopy
from functools import lru_cache
from typing import Any

from sim_cluster.api.errors import Json
from sim_cluster.api.schema.structural import Node


def apply_defaults(value: Any, node: Node) -> None:
    """Fill absent properties that have a default, in place, outermost first."""
    if not _is_defaulted(node):
        return
    if isinstance(value, dict):
        _default_properties(value, node)
        _default_values(value, node)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            apply_defaults(item, node.items)


@lru_cache(maxsize=4096)
def _is_defaulted(node: Node) -> bool:
    """Whether any place below a node has a default."""
    return any(child.has_default or _is_defaulted(child) for child in node.children())


@lru_cache(maxsize=4096)
def _defaulted_properties(node: Node) -> tuple[tuple[str, Node], ...]:
    """The properties with defaults, of their own or further below."""
    named = ((name, node.member(name)) for name in node.property_names)
    return tuple(
        (name, child)
        for name, child in named
        if child is not None and (child.has_default or _is_defaulted(child))
    )


def _default_properties(value: Json, node: Node) -> None:
    for name, child in _defaulted_properties(node):
        if child.has_default and name not in value:
            value[name] = deepcopy(child.default)
        if isinstance(value.get(name), (dict, list)):
            apply_defaults(value[name], child)


def _default_values(value: Json, node: Node) -> None:
    if node.values is None:
        return
    for name, member in value.items():
        if name not in node.property_names and isinstance(member, (dict, list)):
            apply_defaults(member, node.values)
