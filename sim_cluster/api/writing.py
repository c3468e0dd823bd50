"""Writes: create, replace and patch, from what was sent to what is stored."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sim_cluster.api import completing, objects
from sim_cluster.api.builtin import strategy
from sim_cluster.api.calls import Call
from sim_cluster.api.decoding import clean, judge
from sim_cluster.api.errors import (
    Json,
    already_exists,
    bad_request,
    cause,
    conflict,
    invalid,
    not_found,
)
from sim_cluster.api.patches import applying, managed_fields
from sim_cluster.api.patches.applying import Application
from sim_cluster.api.patches.managed_fields import Manager
from sim_cluster.api.resources import Resource
from sim_cluster.api.state import State
from sim_cluster.api.storage import Record

CREATED, OK = 201, 200

_NEEDS_VERSION = frozenset({"leases", "customresourcedefinitions"})
"""Built-in resources whose replacement must name the resourceVersion that it rests on."""

_CREATED_BY_PUT = frozenset({"leases", "events", "endpoints"})


@dataclass(slots=True)
class Writer:
    """Creates and changes objects."""

    state: State
    listeners: list[Callable[[Resource, Json], None]] = field(default_factory=list)
    """Called after each write with the resource and the object."""

    def create(self, call: Call, obj: Json, duplicates: list[str]) -> tuple[int, Json]:
        """Store a new object; returns the code and the object."""
        objects.check_type(call, obj)
        judge(call, clean(call, obj, self.state.node(call.resource), duplicates))
        self._check_new_place(call, obj)
        objects.prepare_new(call, obj)
        if call.resource.custom is None:
            strategy.fill_in(call.resource, obj)
            self._own_what_was_sent(call, obj)
            completing.complete_new(self.state, call, obj)
        else:
            completing.complete_new(self.state, call, obj)
            self._own_what_was_sent(call, obj)
        return CREATED, self.store_new(call, obj)

    def _own_what_was_sent(self, call: Call, obj: Json) -> None:
        """Note the creator of the fields: with defaults, without what admission adds later."""
        resource = call.resource
        sent = {k: v for k, v in obj.items() if k != "status" or not resource.subresources}
        node, manager = self.state.node(resource), self._manager(call)
        managed_fields.record_update(sent, None, node, manager, objects.now_text())

    def _check_new_place(self, call: Call, obj: Json) -> None:
        self.state.check_namespace(call)
        version = (obj.get("metadata") or {}).get("resourceVersion")
        if version:
            raise bad_request("resourceVersion should not be set on objects to be created")

    def store_new(self, call: Call, obj: Json) -> Json:
        """Write a new object, unless its name is taken."""
        resource, name = call.resource, obj["metadata"]["name"]
        collection = self.state.storage.collection(resource.storage_key)
        if collection.get(call.namespace, name) is not None:
            raise already_exists(resource.group, resource.plural, name)
        if not call.is_dry_run:
            self.state.write(resource, obj, "ADDED")
            self._tell(resource, obj)
        return obj

    def replace(self, call: Call, obj: Json, duplicates: list[str]) -> tuple[int, Json]:
        """Replace an object (PUT)."""
        objects.check_type(call, obj)
        judge(call, clean(call, obj, self.state.node(call.resource), duplicates))
        metadata = objects.check_metadata(call, obj)
        if metadata.setdefault("name", call.name) != call.name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL"
                f" ({call.name})"
            )
        record = self.state.find(call)
        if record is None:
            if call.resource.plural in _CREATED_BY_PUT and call.resource.custom is None:
                return self.create(call, obj, [])
            raise not_found(call.resource.group, call.resource.plural, call.name)
        self._check_version(call, metadata, is_required=self._needs_version(call.resource))
        return OK, self.update(call, obj, record)

    def _needs_version(self, resource: Resource) -> bool:
        return resource.custom is not None or resource.plural in _NEEDS_VERSION

    def _check_version(self, call: Call, metadata: Json, *, is_required: bool) -> None:
        resource = call.resource
        record = self.state.record(call)
        version = metadata.get("resourceVersion")
        if not version and is_required:
            text = "Invalid value: 0: must be specified for an update"
            error = cause("FieldValueInvalid", "metadata.resourceVersion", text)
            named = resource.plural if resource.custom is not None else resource.kind
            raise invalid(resource.group, named, call.name, [error])
        if version and version != str(record.revision):
            raise conflict(resource.group, resource.plural, call.name)
        uid = metadata.get("uid")
        if uid and uid != record.uid:
            why = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
            )
            raise conflict(resource.group, resource.plural, call.name, why)

    def check_versions(self, call: Call, metadata: Json) -> None:
        """Refuse a write that rests on another version or another object."""
        self._check_version(call, metadata, is_required=False)

    def update(self, call: Call, obj: Json, record: Record, *, is_applied: bool = False) -> Json:
        """Put a changed object in place of a record, with all that follows from the change."""
        resource = call.resource
        old = self.state.current(resource, record)
        clears_managers = not is_applied and obj["metadata"].get("managedFields") in ([], [{}])
        completing.complete_changed(self.state, call, obj, old)
        objects.keep_identity(obj, old)
        completing.check_metadata(call, obj, old)
        if not is_applied:
            node, manager = self.state.node(resource), self._manager(call)
            managed_fields.record_update(obj, old, node, manager, objects.now_text())
        if clears_managers:
            obj["metadata"].pop("managedFields", None)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if call.subresource != "status":
            completing.bump_generation(resource, obj, old)
        if obj == old:
            return old
        if call.is_dry_run:
            return obj
        if completing.is_finished(obj):
            self.state.delete(resource, obj)
        else:
            self.state.write(resource, obj, "MODIFIED")
        self._tell(resource, obj)
        return obj

    def apply(self, call: Call, config: Json) -> tuple[int, Json]:
        """Server-side apply."""
        resource, node = call.resource, self.state.node(call.resource)
        record = self.state.find(call)
        manager = Manager(call.manager, "Apply", resource.group_version, call.subresource)
        request = Application(
            config=config,
            manager=manager,
            is_forced=call.flag("force"),
            now=objects.now_text(),
        )
        if record is None:
            if call.subresource:
                raise not_found(resource.group, resource.plural, call.name)
            return CREATED, self._apply_new(call, request)
        self.check_versions(call, config.get("metadata") or {})
        live = self.state.current(resource, record)
        merged = applying.apply(live, request, node)
        return OK, self.update(call, merged, record, is_applied=True)

    def _apply_new(self, call: Call, request: Application) -> Json:
        node = self.state.node(call.resource)
        obj = applying.apply(None, request, node)
        managers = obj["metadata"].get("managedFields", [])
        self._check_new_place(call, obj)
        objects.prepare_new(call, obj)
        completing.complete_new(self.state, call, obj)
        obj["metadata"]["managedFields"] = managers
        return self.store_new(call, obj)

    def _manager(self, call: Call) -> Manager:
        version = call.resource.group_version
        return Manager(call.manager, "Update", version, call.subresource)

    def _tell(self, resource: Resource, obj: Json) -> None:
        for listener in self.listeners:
            listener(resource, obj)
