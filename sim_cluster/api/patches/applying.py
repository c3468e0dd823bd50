"""
Server-side apply: a configuration merged into an object, with the fields that it names owned.

An apply gives its manager exactly the fields of the configuration, removes those that it gave up
and nobody else holds, and is refused when it would change what another manager set.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import orjson

from sim_cluster.api.errors import ApiError, Json, bad_request
from sim_cluster.api.patches import field_sets
from sim_cluster.api.patches.field_sets import ABSENT, Field, Fields
from sim_cluster.api.patches.managed_fields import LAST_APPLIED, Managed, Manager, read, write
from sim_cluster.api.schema.structural import Node


def merge_applied(live: Any, applied: Any, node: Node | None) -> Any:
    """The live value with an applied configuration merged in by the rules of the schema."""
    if node is not None and node.is_atomic:
        return deepcopy(applied)
    if isinstance(live, dict) and isinstance(applied, dict):
        merged = dict(live)
        for key, value in applied.items():
            child = node.member(key) if node is not None else None
            merged[key] = merge_applied(live[key], value, child) if key in live else deepcopy(value)
        return merged
    if isinstance(live, list) and isinstance(applied, list) and node is not None:
        return _merge_lists(live, applied, node)
    return deepcopy(applied)


def _merge_lists(live: list[Any], applied: list[Any], node: Node) -> list[Any]:
    wanted = {field_sets.item_element(item, node): item for item in applied}
    present = {field_sets.item_element(item, node): item for item in live}
    merged = []
    for element, item in present.items():
        if element in wanted:
            merged.append(merge_applied(item, wanted[element], node.items))
        else:
            merged.append(item)
    merged += [deepcopy(item) for element, item in wanted.items() if element not in present]
    applied_order = [element for element in wanted if element in present]
    if applied_order != [element for element in present if element in wanted]:
        by_element = {field_sets.item_element(item, node): item for item in merged}
        rest = [element for element in by_element if element not in wanted]
        merged = [by_element[element] for element in [*wanted, *rest]]
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One server-side apply: who applies what."""

    config: Json
    manager: Manager
    is_forced: bool
    now: str


def apply(live: Json | None, request: Application, node: Node) -> Json:
    """The object after a server-side apply, `managedFields` included."""
    config = request.config
    if config.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    wanted = field_sets.applied_fields(config, node)
    if live is None:
        created = deepcopy(config)
        write(created, {request.manager: (wanted, request.now)})
        return created
    managed = read(live)
    contested = _contested(live, request, wanted, managed, node)
    refused = {} if request.is_forced else _still_refused(contested, live, request.manager, node)
    if refused:
        raise _refusal(refused)
    merged: Json = merge_applied(live, config, node)
    before = managed.get(request.manager, (frozenset(), ""))[0]
    held = wanted.union(
        *(fields for other, (fields, _) in managed.items() if other != request.manager)
    )
    for field in sorted(before - held, key=len):
        _remove(merged, field, node, held)
    lost = {manager: frozenset(fields) for manager, fields in contested.items()}
    updated = {
        other: (fields - lost.get(other, frozenset()), time)
        for other, (fields, time) in managed.items()
    }
    time = managed[request.manager][1] if before == wanted else request.now
    updated[request.manager] = (wanted, time)
    present = field_sets.all_fields(merged, node)
    for other, (fields, when) in updated.items():
        if other != request.manager:
            updated[other] = (fields & present, when)
    write(merged, updated)
    return merged


def _contested(
    live: Json, request: Application, wanted: Fields, managed: Managed, node: Node
) -> dict[Manager, list[Field]]:
    found: dict[Manager, list[Field]] = {}
    for other, (fields, _) in managed.items():
        if other == request.manager:
            continue
        for field in sorted(wanted & fields):
            there = field_sets.value_at(live, field, node)
            asked = field_sets.value_at(request.config, field, node)
            if there is not ABSENT and _differs(there, asked, field, node):
                found.setdefault(other, []).append(field)
    return found


def _still_refused(
    contested: dict[Manager, list[Field]], live: Json, manager: Manager, node: Node
) -> dict[Manager, list[Field]]:
    """
    Conflicts that stand. kubectl takes over what it applied itself before, on the client's side.

    That earlier configuration lies in an annotation of the object.
    """
    annotation = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if manager.name != "kubectl" or not contested or not annotation:
        return contested
    try:
        own = field_sets.applied_fields(orjson.loads(annotation), node)
    except orjson.JSONDecodeError:
        return contested
    left = {other: [f for f in fields if f not in own] for other, fields in contested.items()}
    return {other: fields for other, fields in left.items() if fields}


def _differs(there: Any, asked: Any, field: Field, node: Node) -> bool:
    if there == asked:
        return False
    place = _node_at(field, node)
    is_open = place is None or not place.is_atomic
    if isinstance(there, dict) and isinstance(asked, dict) and is_open:
        return False
    return not (isinstance(there, list) and isinstance(asked, list) and is_open)


def _node_at(field: Field, node: Node | None) -> Node | None:
    for element in field:
        if node is None:
            return None
        node = node.member(element[2:]) if element[0] == "f" else node.items
    return node


def _refusal(contested: Mapping[Manager, list[Field]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager}",
            "field": field_sets.shown(field),
        }
        for manager, fields in contested.items()
        for field in fields
    ]
    if len(causes) == 1:
        only = causes[0]
        message = f"Apply failed with 1 conflict: {only['message']}: {only['field']}"
    else:
        lines = []
        for manager in sorted(contested, key=str):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {field_sets.shown(field)}" for field in contested[manager]]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, details={"causes": causes})


def _remove(obj: Any, field: Field, node: Node, held: Fields) -> None:
    """Take a field out of an object, unless somebody holds something below it."""
    if any(other[: len(field)] == field for other in held):
        return
    parent = field_sets.value_at(obj, field[:-1], node) if len(field) > 1 else obj
    last = field[-1]
    if isinstance(parent, dict) and last[0] == "f":
        parent.pop(last[2:], None)
    elif isinstance(parent, list):
        place = _node_at(field[:-1], node)
        if place is not None:
            parent[:] = [x for x in parent if field_sets.item_element(x, place) != last]
