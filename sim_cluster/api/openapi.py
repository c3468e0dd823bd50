"""
OpenAPI v3, as far as clients read it.

That is: schemas for `explain`, and which writes take `fieldValidation`, without which kubectl
would validate on its own.

OpenAPI v2 is not served (404 like a server without it): current clients ask for v3 first.
"""

import hashlib
from typing import Any

import orjson

from sim_cluster.api.errors import Json
from sim_cluster.api.resources import Registry, Resource, schema_of
from sim_cluster.api.schema.structural import TYPE_META

_PREFIX = "#/components/schemas/"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"
"""Offered for built-in kinds only; kubectl looks here before it sends one."""


def paths(registry: Registry) -> Json:
    """The index of all documents; the hash changes when a document does."""
    index = {}
    for group, versions in registry.groups().items():
        for version in versions:
            key = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(f"{key} {registry.revision}".encode()).hexdigest()
            index[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest.upper()}"}
    return {"paths": index}


def document(registry: Registry, group: str, version: str) -> Json | None:
    """The document of one group and version; None when it does not exist."""
    found = [r for r in registry if r.group == group and r.version == version]
    if not found:
        return None
    schemas: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for resource in found:
        name = _name(resource)
        if resource.custom is None:
            _collect(resource.schema_name, schemas)
        else:
            _collect(TYPE_META["metadata"]["$ref"], schemas)
            schemas[name] = _custom_schema(resource)
        operations.update(_operations(resource, name))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.2"},
        "paths": operations,
        "components": {"schemas": schemas},
    }


def _name(resource: Resource) -> str:
    if resource.custom is None:
        return resource.schema_name
    reverse = ".".join(reversed(resource.group.split(".")))
    return f"{reverse}.{resource.version}.{resource.kind}"


def _custom_schema(resource: Resource) -> Json:
    schema = dict(resource.schema or {})
    schema["type"] = "object"
    schema["properties"] = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": _PREFIX + TYPE_META["metadata"]["$ref"]}]},
    }
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _gvk(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _collect(name: str, schemas: dict[str, Any]) -> None:
    """Add a built-in schema and all that it refers to."""
    if name in schemas:
        return
    raw = schema_of(name)
    schemas[name] = _long_references(raw)
    for reference in _references(raw):
        _collect(reference, schemas)


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for value in node.values() for ref in _references(value)]
    if isinstance(node, list):
        return [ref for value in node for ref in _references(value)]
    return []


def _long_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_long_references(value) for value in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        rest = {key: _long_references(value) for key, value in node.items() if key != "$ref"}
        return {"allOf": [{"$ref": _PREFIX + node["$ref"]}], **rest}
    return {key: _long_references(value) for key, value in node.items()}


def _operations(resource: Resource, name: str) -> Json:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    prefix = f"{root}/{resource.version}"
    if resource.is_namespaced:
        prefix += "/namespaces/{namespace}"
    path = f"{prefix}/{resource.plural}"
    reference = {"$ref": _PREFIX + name}
    content = {"application/json": {"schema": reference}}
    parameters = [
        {"name": option, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for option in ("dryRun", "fieldManager", "fieldValidation", "pretty")
    ]

    def operation(action: str, body: Json) -> Json:
        return {
            "tags": [resource.group_version],
            "operationId": f"{action}{resource.kind}",
            "parameters": parameters,
            "requestBody": {"content": body, "required": True},
            "responses": {"200": {"description": "OK", "content": content}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _gvk(resource),
        }

    media_types = _PATCHES if resource.custom is not None else (*_PATCHES, _STRATEGIC)
    patch = {media: {"schema": {"type": "object"}} for media in media_types}
    found: Json = {}
    if "create" in resource.verbs:
        found[path] = {"post": operation("post", content)}
    if "patch" in resource.verbs:
        found[path + "/{name}"] = {
            "put": operation("put", content),
            "patch": operation("patch", patch),
        }
    return found


def to_bytes(value: Json) -> bytes:
    """A document as it is sent."""
    return orjson.dumps(value)
