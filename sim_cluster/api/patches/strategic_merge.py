"""
Strategic merge patch: like a merge patch, but lists with a merge key are merged item by item.

The merge keys come from the schemas of the built-in kinds. Directives: `$patch` (replace, delete,
merge), `$retainKeys`, `$setElementOrder/FIELD` and `$deleteFromPrimitiveList/FIELD`.
"""

from typing import Any

from sim_cluster.api.errors import Json, bad_request
from sim_cluster.api.schema.structural import Node

_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def apply_strategic_merge(document: Any, patch: Any, node: Node | None) -> Any:
    """The document with the patch merged in by the rules of its schema."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result: Json = dict(document) if isinstance(document, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(result, key, value, node)
    _directives(result, patch, node)
    return result


def _merge_field(result: Json, key: str, value: Any, node: Node | None) -> None:
    child = node.member(key) if node is not None else None
    if value is None:
        result.pop(key, None)
    elif isinstance(value, list):
        result[key] = _merge_list(result.get(key), value, child, key)
    elif isinstance(value, dict) and not _replaces(child):
        result[key] = apply_strategic_merge(result.get(key), value, child)
    else:
        result[key] = value


def _replaces(node: Node | None) -> bool:
    return node is not None and "replace" in node.patch_strategy.split(",")


def _merge_list(current: Any, patch: list[Any], node: Node | None, field: str) -> list[Any]:
    if node is None or "merge" not in node.patch_strategy.split(","):
        return [item for item in patch if not _is_directive(item)]
    merged: list[Any] = list(current or [])
    if not node.patch_key:
        return merged + [item for item in patch if item not in merged]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not _is_directive(item)]
    for item in patch:
        merged = _merge_item(merged, item, node, field)
    return merged


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and "$patch" in item


def _merge_item(current: list[Any], item: Any, node: Node, field: str) -> list[Any]:
    key = node.patch_key
    if not isinstance(item, dict) or key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key} ({field})")
    same = [index for index, old in enumerate(current) if old.get(key) == item[key]]
    if item.get("$patch") == "delete":
        return [old for index, old in enumerate(current) if index not in same]
    if not same:
        return [*current, apply_strategic_merge({}, item, node.items)]
    merged = apply_strategic_merge(current[same[0]], item, node.items)
    return [merged if index == same[0] else old for index, old in enumerate(current)]


def _directives(result: Json, patch: Json, node: Node | None) -> None:
    for key, value in patch.items():
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            if field in result:
                result[field] = [item for item in result[field] if item not in value]
        elif key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            child = node.member(field) if node is not None else None
            if field in result:
                result[field] = _ordered(result[field], value, child)


def _ordered(items: list[Any], order: list[Any], node: Node | None) -> list[Any]:
    """Items in the order that the patch asks for; those it does not name keep their place."""
    key = node.patch_key if node is not None else ""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    ranks = {str(identity(item)): rank for rank, item in enumerate(order)}
    named = sorted(
        (item for item in items if str(identity(item)) in ranks),
        key=lambda item: ranks[str(identity(item))],
    )
    remaining = iter(named)
    return [next(remaining) if str(identity(item)) in ranks else item for item in items]
