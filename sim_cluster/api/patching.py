"""PATCH: four formats, one way of storing the outcome."""

from copy import deepcopy
from typing import Any

import orjson
import yaml

from sim_cluster.api.calls import Call
from sim_cluster.api.decoding import clean
from sim_cluster.api.errors import (
    ApiError,
    Json,
    bad_request,
    cause,
    conflict,
    invalid,
    unsupported_media_type,
)
from sim_cluster.api.patches.json_patch import apply_json_patch
from sim_cluster.api.patches.merge_patch import apply_merge_patch
from sim_cluster.api.patches.strategic_merge import apply_strategic_merge
from sim_cluster.api.schema.pruning import duplicate_fields, prune
from sim_cluster.api.schema.structural import Node
from sim_cluster.api.writing import Writer

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
FORMATS = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE, APPLY)


def parse(content_type: str, body: bytes) -> Any:
    """The patch of a body."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if content_type != APPLY:
            raise bad_request(f"error decoding patch: {error}") from error
    try:
        return yaml.load(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error


def patch_object(document: Json, content_type: str, patch: Any, node: Node | None) -> Json:
    """A document with a patch of one of the three change formats applied."""
    if content_type == JSON_PATCH:
        return apply_json_patch(document, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: the patch must be an object")
    if content_type == MERGE_PATCH:
        merged = apply_merge_patch(document, patch)
    elif content_type == STRATEGIC_MERGE and node is not None:
        merged = apply_strategic_merge(document, patch, node)
    else:
        raise unsupported_media_type(content_type, FORMATS[:2] + FORMATS[3:])
    result: Json = merged
    return result


def patch(call: Call, writer: Writer, content_type: str, body: bytes) -> tuple[int, Json]:
    """Patch an object and store it."""
    sent = parse(content_type, body)
    if content_type == APPLY:
        return _apply(call, writer, sent, body)
    record = writer.state.record(call)
    old = writer.state.current(call.resource, record)
    node = writer.state.node(call.resource)
    typed = node if call.resource.custom is None else None
    obj = patch_object(deepcopy(old), content_type, sent, typed)
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name") != call.name:
        raise bad_request(
            f"the name of the object ({metadata.get('name')}) does not match the name on the URL"
            f" ({call.name})"
        )
    if obj.get("kind") != old["kind"] or obj.get("apiVersion") != old["apiVersion"]:
        raise bad_request("the kind or apiVersion of the patched object does not match the URL")
    version = metadata.get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(call.resource.group, call.resource.plural, call.name)
    _check_identity(call, metadata, old["metadata"])
    duplicates = duplicate_fields(body, sent)
    _judge(call, clean(call, obj, node, duplicates), body)
    return 200, writer.update(call, obj, record)


def _check_identity(call: Call, metadata: Json, before: Json) -> None:
    uid = metadata.get("uid")
    if uid != before["uid"]:
        resource = call.resource
        text = f'Invalid value: "{uid or ""}": field is immutable'
        error = cause("FieldValueInvalid", "metadata.uid", text)
        raise invalid(resource.group, resource.kind, call.name, [error])


def _judge(call: Call, complaints: list[str], body: bytes) -> None:
    if not complaints:
        return
    if call.field_validation == "Strict":
        text = body.decode(errors="replace").replace('"', '\\"')
        detail = f"strict decoding error: {', '.join(complaints)}"
        error = cause("FieldValueInvalid", "patch", f'Invalid value: "{text}": {detail}')
        message = f' "" is invalid: patch: {error["message"]}'
        raise ApiError(422, "Invalid", message, details={"causes": [error]})
    call.warnings.extend(complaints)


def _apply(call: Call, writer: Writer, sent: Any, body: bytes) -> tuple[int, Json]:
    if not isinstance(sent, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    if not call.query.get("fieldManager"):
        field = cause(
            "FieldValueRequired", "fieldManager", "Required value: is required for apply patch"
        )
        message = (
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required'
        )
        raise ApiError(422, "Invalid", f"{message} for apply patch", details={"causes": [field]})
    resource = call.resource
    if sent.get("kind") != resource.kind or sent.get("apiVersion") != resource.group_version:
        raise bad_request(
            f"Incorrect version specified in apply patch. Specified patch version:"
            f" {sent.get('apiVersion')}, expected: {resource.group_version}"
        )
    metadata = sent.setdefault("metadata", {})
    if metadata.setdefault("name", call.name) != call.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL"
            f" ({call.name})"
        )
    where = f"{metadata.get('namespace', '')}/{call.name}"
    if resource.is_namespaced:
        metadata.setdefault("namespace", call.namespace)
    node = writer.state.node(resource)
    _judge_apply(call, prune(deepcopy(sent), node), where)
    duplicates = duplicate_fields(body, sent) if body.lstrip().startswith(b"{") else []
    complaints = clean(call, sent, node, duplicates)
    if complaints and call.field_validation == "Strict":
        raise bad_request(f"error decoding patch: strict decoding error: {', '.join(complaints)}")
    call.warnings.extend(complaints)
    return writer.apply(call, sent)


def _judge_apply(call: Call, unknown: list[str], where: str) -> None:
    """Server-side apply takes no unknown field, whatever `fieldValidation` says."""
    if not unknown:
        return
    group_version, kind = call.resource.group_version, call.resource.kind
    message = (
        f"failed to create typed patch object ({where}; {group_version}, Kind={kind}):"
        f" .{unknown[0]}: field not declared in schema"
    )
    raise ApiError(500, "", message)
