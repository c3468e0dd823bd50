"""Defaults that a CRD's schema gives; those of the built-in kinds are in `builtin/defaults.py`."""

from copy import deepcopy
from typing import Any

from sim_cluster.api.errors import Json
from sim_cluster.api.schema.structural import Node


def apply_defaults(value: Any, node: Node) -> None:
    """Fill absent properties that have a default, in place, outermost first."""
    if isinstance(value, dict):
        _default_properties(value, node)
        _default_values(value, node)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            apply_defaults(item, node.items)


def _default_properties(value: Json, node: Node) -> None:
    for name in node.property_names:
        child = node.member(name)
        if child is None:
            continue
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
