"""
Who set which field: `metadata.managedFields`, for plain updates and for server-side apply.

An update gives its manager the fields that it added or changed; apply is in `applying.py`.
"""

from dataclasses import dataclass
from typing import Any

from sim_cluster.api.errors import Json
from sim_cluster.api.patches import field_sets
from sim_cluster.api.patches.field_sets import Field, Fields
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


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

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


def write(obj: Json, managed: Managed) -> None:
    """Note the managers in an object."""
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
        write(obj, {manager: (new_fields, now)})
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
    write(obj, updated)


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
        isinstance(old, list)
        and isinstance(new, list)
        and node is not None
        and not node.is_atomic
        and node.list_type == "map"
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
