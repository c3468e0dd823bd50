"""All that the server holds: the stored objects and the resources that they belong to."""

from collections.abc import Mapping
from typing import Any

import orjson

from sim_cluster.api.builtin.events import as_served, as_stored
from sim_cluster.api.calls import Call
from sim_cluster.api.custom_resources import node_of, selectable_paths
from sim_cluster.api.errors import Json, forbidden, not_found
from sim_cluster.api.resources import Registry, Resource
from sim_cluster.api.schema.structural import Node, builtin_node
from sim_cluster.api.selectors import FIELDS, selectable
from sim_cluster.api.storage import Record, Storage
from sim_cluster.api.watch_cache import Rendering


class State:
    """Stored objects, served resources, and the schema of each."""

    def __init__(self) -> None:
        self.storage = Storage()
        self.registry = Registry()
        self._nodes: dict[int, tuple[Resource, Node]] = {}

    def node(self, resource: Resource) -> Node:
        """The schema of a resource's objects."""
        if resource.custom is None:
            return builtin_node(resource.schema_name)
        found = self._nodes.get(id(resource))
        if found is None:
            found = self._nodes[id(resource)] = (resource, node_of(resource))
        return found[1]

    def selectable_fields(self, resource: Resource) -> tuple[str, ...]:
        """Fields that field selectors may use."""
        if resource.custom is not None:
            return selectable_paths(resource)
        return FIELDS.get(resource.storage_key, ())

    def fields(self, resource: Resource, obj: Json) -> Mapping[str, str]:
        """The selectable fields of one object."""
        return selectable(obj, self.selectable_fields(resource))

    def record(self, call: Call) -> Record:
        """The record that a request names; 404 when there is none."""
        resource = call.resource
        record = self.storage.collection(resource.storage_key).get(call.namespace, call.name)
        if record is None:
            raise not_found(resource.group, resource.plural, call.name)
        return record

    def find(self, call: Call) -> Record | None:
        """The record that a request names."""
        return self.storage.collection(call.resource.storage_key).get(call.namespace, call.name)

    def write(self, resource: Resource, obj: Json, kind: str) -> Record:
        """Store an object (in its stored version)."""
        obj = self.to_stored(resource, obj)
        return self.storage.write(resource.storage_key, obj, self.fields(resource, obj), kind)

    def delete(self, resource: Resource, obj: Json) -> Record:
        """Remove an object."""
        obj = self.to_stored(resource, obj)
        return self.storage.delete(resource.storage_key, obj, self.fields(resource, obj))

    def to_stored(self, resource: Resource, obj: Json) -> Json:
        """An object in the version in which it is stored."""
        if resource.custom is not None:
            version = resource.custom["storageVersion"]
            if version != resource.version:
                return {**obj, "apiVersion": f"{resource.group}/{version}"}
        elif resource.group == "events.k8s.io":
            return as_stored(obj)
        return obj

    def to_served(self, resource: Resource, obj: Json) -> Json:
        """A stored object in the version that a request asks for."""
        if resource.custom is not None and obj["apiVersion"] != resource.group_version:
            return {**obj, "apiVersion": resource.group_version}
        if resource.group == "events.k8s.io":
            return as_served(obj)
        return obj

    def rendering(self, resource: Resource) -> Rendering:
        """How records of a resource become bytes: as they lie, when the versions agree."""
        is_stored = resource.group != "events.k8s.io" and (
            resource.custom is None or resource.custom["storageVersion"] == resource.version
        )
        if is_stored:
            return _body
        return lambda record: dumps(self.to_served(resource, record.parsed()))

    def current(self, resource: Resource, record: Record) -> Json:
        """A fresh copy of a record's object, in the version of a resource."""
        return self.to_served(resource, record.parsed())

    def check_namespace(self, call: Call) -> None:
        """Refuse to create in a namespace that does not exist or is going away."""
        if not call.resource.is_namespaced:
            return
        record = self.storage.collection(("", "namespaces")).get("", call.namespace)
        if record is None:
            raise not_found("", "namespaces", call.namespace)
        if record.fields.get("status.phase") == "Terminating":
            why = (
                f"unable to create new content in namespace {call.namespace} because it is"
                " being terminated"
            )
            error = forbidden(call.resource.group, call.resource.plural, call.name, why)
            details = error.details or {}
            text = f"namespace {call.namespace} is being terminated"
            details["causes"] = [
                {"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}
            ]
            raise error


def _body(record: Record) -> bytes:
    return record.body


def dumps(obj: Any) -> bytes:
    """JSON of a value."""
    return orjson.dumps(obj)
