"""Unknown and duplicate fields: found for `fieldValidation`, dropped like the real decoder."""

import json
from typing import Any

import orjson

from sim_cluster.api.errors import Json
from sim_cluster.api.schema.structural import TYPE_META, Node


def prune(value: Any, node: Node, path: str = "") -> list[str]:
    """Drop what the schema does not know, in place; returns the paths of what was dropped."""
    unknown: list[str] = []
    _prune(value, node, path, unknown)
    return unknown


def _prune(value: Any, node: Node, path: str, unknown: list[str]) -> None:
    if node.is_free:
        return
    if isinstance(value, dict):
        _prune_object(value, node, path, unknown)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, node.items, f"{path}[{index}]", unknown)


def _prune_object(value: Json, node: Node, path: str, unknown: list[str]) -> None:
    names = node.property_names
    if not names and not node.is_map and node.kind != "object":
        return
    for key, member in list(value.items()):
        is_deep = isinstance(member, (dict, list))
        if key in names and not is_deep:
            continue
        child = node.member(key)
        if child is None and node.is_embedded and key in TYPE_META:
            continue
        if child is None:
            if node.keeps_unknown:
                continue
            unknown.append(f"{path}.{key}" if path else key)
            del value[key]
        elif is_deep:
            _prune(member, child, f"{path}.{key}" if path else key, unknown)


def drop_nulls(value: Any, node: Node) -> None:
    """Remove nulls that the schema does not allow: they count as absent, and are defaulted."""
    if isinstance(value, dict):
        for key in list(value):
            member = value[key]
            if member is not None and not isinstance(member, (dict, list)):
                continue
            child = node.member(key)
            if child is None:
                continue
            if member is not None:
                drop_nulls(member, child)
            elif not child.is_nullable:
                del value[key]
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            drop_nulls(item, node.items)


def duplicate_fields(body: bytes, parsed: Any) -> list[str]:
    """
    Paths of keys that a JSON text gives twice.

    The quick way out: a text without escapes that has as many quotes as the parsed value written
    out again has lost no key.
    """
    if b"\\u" not in body and body.count(b'"') == orjson.dumps(parsed).count(b'"'):
        return []
    found: list[str] = []
    _walk_pairs(json.loads(body, object_pairs_hook=_Pairs), "", found)
    return found


class _Pairs(list[tuple[str, Any]]):
    """An object as a list of its members, duplicates included."""


def _walk_pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                found.append(where)
            seen.add(key)
            _walk_pairs(member, where, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk_pairs(item, f"{path}[{index}]", found)
