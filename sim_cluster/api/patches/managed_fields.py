"""
Who set which field: `metadata.managedFields`, for plain updates and for server-side apply.

An update gives its manager the fields that it added or changed. An apply gives its manager
exactly the fields of the applied configuration, removes those that it gave up and nobody else
holds, and is refused when it would change what another manager set.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from sim_cluster.api.errors import ApiError, Json, bad_request
from sim_cluster.api.patches import field_sets
from sim_cluster.api.patches.field_sets import ABSENT, Field, Fields
from sim_cluster.api.schema.structural import Node


@dataclass(frozen=True, slots=True)
class Manager:
    """Who holds fields, by which operation, through which version and subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


Managed = dict[Manager, tuple[Fields, str]]
"""Fields of each manager, and the time of its last write."""


def read(obj: Json) -> Managed:
    """The managers of an object."""
    managed: Managed = {}
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        if not entry.get("manager") and not entry.get("operation"):
            continue
        manager = Manager(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        fields = field_sets.from_wire(entry.get("fieldsV1") or {})
        managed[manager] = (fields, entry.get("time", ""))
    return managed


def _write(obj: Json, managed: Managed) -> None:
    entries = []
    ordered = sorted(managed.items(), key=lambda item: (item[0].operation, item[1][1]))
    for manager, (fields, time) in ordered:
        if not fields:
            continue
        entry: Json = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": field_sets.to_wire(fields),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def record_update(obj: Json, old: Json | None, node: Node, manager: Manager, now: str) -> None:
    """Note in an object which fields a create, update or patch has set."""
    new_fields = field_sets.all_fields(obj, node)
    if old is None:
        _write(obj, {manager: (new_fields, now)})
        return
    managed = read(old)
    old_fields = field_sets.all_fields(old, node)
    changed = _changed(old, obj, old_fields & new_fields, node)
    taken = (new_fields - old_fields) | changed
    gone = old_fields - new_fields
    if not taken and not gone:
        _keep(obj, old)
        return
    updated: Managed = {}
    for other, (fields, time) in managed.items():
        updated[other] = (fields - gone - taken if other != manager else fields - gone, time)
    mine = updated.get(manager, (frozenset(), now))[0] | taken
    if taken or (manager in managed and mine != managed[manager][0]):
        updated[manager] = (mine, now)
    _write(obj, updated)


def _keep(obj: Json, old: Json) -> None:
    entries = old["metadata"].get("managedFields")
    if entries is None:
        obj["metadata"].pop("managedFields", None)
    else:
        obj["metadata"]["managedFields"] = entries


def _changed(old: Any, new: Any, common: Fields, node: Node) -> Fields:
    """Fields of both objects whose own value (not that of a field below) differs."""
    found: set[Field] = set()
    _compare(old, new, node, (), found)
    return frozenset(found & common)


def _compare(old: Any, new: Any, node: Node | None, path: Field, found: set[Field]) -> None:
    if old == new:
        return
    is_open = node is None or not node.is_atomic
    if isinstance(old, dict) and isinstance(new, dict) and is_open:
        for key in old.keys() & new.keys():
            child = node.member(key) if node is not None else None
            _compare(old[key], new[key], child, (*path, f"f:{key}"), found)
    elif (
        isinstance(old, list) and isinstance(new, list) and node is not None
        and not node.is_atomic and node.list_type == "map"
    ):
        before = {field_sets.item_element(item, node): item for item in old}
        for item in new:
            element = field_sets.item_element(item, node)
            if element in before:
                _compare(before[element], item, node.items, (*path, element), found)
    elif isinstance(old, list) and isinstance(new, list) and node and node.list_type == "set":
        return
    else:
        found.add(path)


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
        _write(created, {request.manager: (wanted, request.now)})
        return created
    managed = read(live)
    contested = _contested(live, config, wanted, managed, request.manager, node)
    if contested and not request.is_forced:
        raise _refusal(contested)
    merged = merge_applied(live, config, node)
    before = managed.get(request.manager, (frozenset(), ""))[0]
    held = wanted.union(*(fields for other, (fields, _) in managed.items()
                          if other != request.manager))
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
    _write(merged, updated)
    return merged


def _contested(
    live: Json, config: Json, wanted: Fields, managed: Managed, manager: Manager, node: Node
) -> dict[Manager, list[Field]]:
    found: dict[Manager, list[Field]] = {}
    for other, (fields, _) in managed.items():
        if other == manager:
            continue
        for field in sorted(wanted & fields):
            there = field_sets.value_at(live, field, node)
            asked = field_sets.value_at(config, field, node)
            if there is not ABSENT and _differs(there, asked, field, node):
                found.setdefault(other, []).append(field)
    return found


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
