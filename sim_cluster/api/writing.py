"""Writes: create, replace and patch, from what was sent to what is stored."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from sim_cluster.api import custom_resources, objects
from sim_cluster.api.builtin import strategy
from sim_cluster.api.calls import Call
from sim_cluster.api.decoding import clean, complete_custom, judge
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
_CRDS = "customresourcedefinitions"


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
        self._own_what_was_sent(call, obj)
        self.complete_new(call, obj)
        if call.resource.custom is not None:
            self._own_what_was_sent(call, obj)
        return CREATED, self.store_new(call, obj)

    def _own_what_was_sent(self, call: Call, obj: Json) -> None:
        """Note the creator of the fields: with defaults, without what admission adds later."""
        resource = call.resource
        if resource.custom is None:
            strategy.fill_in(resource, obj)
        sent = {k: v for k, v in obj.items() if k != "status" or not resource.subresources}
        node, manager = self.state.node(resource), self._manager(call)
        managed_fields.record_update(sent, None, node, manager, objects.now_text())

    def _check_new_place(self, call: Call, obj: Json) -> None:
        self.state.check_namespace(call)
        version = (obj.get("metadata") or {}).get("resourceVersion")
        if version:
            raise bad_request("resourceVersion should not be set on objects to be created")

    def complete_new(self, call: Call, obj: Json) -> None:
        """Defaults and checks of a new object."""
        resource = call.resource
        if resource.plural == _CRDS:
            custom_resources.default_crd(obj)
            custom_resources.check_crd(obj)
            obj["status"] = {}
            custom_resources.establish(obj)
        elif resource.custom is None:
            strategy.prepare_create(call, obj, self.state.storage)
        else:
            if "status" in resource.subresources:
                obj.pop("status", None)
            complete_custom(resource, obj, self.state.node(resource), None)

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
        clears_managers = self._clears_managers(obj, is_applied=is_applied)
        self._complete_changed(call, obj, old)
        objects.keep_identity(obj, old)
        self._check_metadata(call, obj, old)
        if not is_applied:
            node, manager = self.state.node(resource), self._manager(call)
            managed_fields.record_update(obj, old, node, manager, objects.now_text())
        if clears_managers:
            obj["metadata"].pop("managedFields", None)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if call.subresource != "status":
            self._bump_generation(resource, obj, old)
        if obj == old:
            return old
        if call.is_dry_run:
            return obj
        if self._is_finished(obj):
            self.state.delete(resource, obj)
        else:
            self.state.write(resource, obj, "MODIFIED")
        self._tell(resource, obj)
        return obj

    def _clears_managers(self, obj: Json, *, is_applied: bool) -> bool:
        sent = obj["metadata"].get("managedFields")
        return not is_applied and sent in ([], [{}])

    def _complete_changed(self, call: Call, obj: Json, old: Json) -> None:
        resource = call.resource
        if resource.plural == _CRDS and resource.custom is None:
            if call.subresource != "status":
                obj["status"] = deepcopy(old.get("status") or {})
                custom_resources.default_crd(obj)
                custom_resources.check_crd(obj)
                custom_resources.establish(obj)
        elif resource.custom is None:
            strategy.prepare_update(call, obj, old, self.state.storage)
        else:
            self._keep_apart(call, obj, old)
            complete_custom(resource, obj, self.state.node(resource), old)

    def _keep_apart(self, call: Call, obj: Json, old: Json) -> None:
        """A custom object's status changes through its own URL only, and nothing else there."""
        if call.subresource == "status":
            managers = obj["metadata"].get("managedFields")
            status = obj.get("status")
            for name in list(obj):
                if name not in {"apiVersion", "kind"}:
                    del obj[name]
            obj.update(deepcopy({k: v for k, v in old.items() if k != "status"}))
            if status is not None:
                obj["status"] = status
            if managers is not None:
                obj["metadata"]["managedFields"] = managers
        elif "status" in call.resource.subresources:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]

    def _check_metadata(self, call: Call, obj: Json, old: Json) -> None:
        metadata, before = obj["metadata"], old["metadata"]
        errors = objects.label_errors(metadata.get("labels"), "metadata.labels")
        if before.get("deletionTimestamp"):
            known = set(before.get("finalizers") or ())
            new = [name for name in metadata.get("finalizers") or () if name not in known]
            if new:
                names = ", ".join(f'"{name}"' for name in new)
                text = (
                    "Forbidden: no new finalizers can be added if the object is being deleted,"
                    f" found new finalizers []string{{{names}}}"
                )
                errors.append(cause("FieldValueForbidden", "metadata.finalizers", text))
        for name in ("labels", "annotations", "finalizers", "ownerReferences"):
            if name in metadata and not metadata[name]:
                del metadata[name]
        if errors:
            raise invalid(call.resource.group, call.resource.kind, call.name, errors)

    def _bump_generation(self, resource: Resource, obj: Json, old: Json) -> None:
        if not resource.has_generation:
            return
        before, after = objects.content(old), objects.content(obj)
        if resource.custom is not None and "status" not in resource.subresources:
            before, after = {**before, "s": old.get("status")}, {**after, "s": obj.get("status")}
        changed = before != after
        if resource.plural == "deployments" and resource.custom is None:
            annotations = obj["metadata"].get("annotations"), old["metadata"].get("annotations")
            changed = changed or annotations[0] != annotations[1]
        if changed:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _is_finished(self, obj: Json) -> bool:
        metadata = obj["metadata"]
        if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
            return False
        if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
            return not obj["spec"].get("finalizers")
        return not metadata.get("deletionGracePeriodSeconds", 0)

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
        self.complete_new(call, obj)
        obj["metadata"]["managedFields"] = managers
        return self.store_new(call, obj)

    def _manager(self, call: Call) -> Manager:
        version = call.resource.group_version
        return Manager(call.manager, "Update", version, call.subresource)

    def _tell(self, resource: Resource, obj: Json) -> None:
        for listener in self.listeners:
            listener(resource, obj)
