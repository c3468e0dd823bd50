"""DELETE: preconditions, grace, finalizers, and what cascades inside the server."""

from sim_cluster.api import custom_resources
from sim_cluster.api.authentication import User
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import ApiError, Json, cause, conflict, success
from sim_cluster.api.objects import now_text
from sim_cluster.api.resources import Resource
from sim_cluster.api.selectors import Selector
from sim_cluster.api.storage import Record
from sim_cluster.api.writing import Writer

_RETURNED = frozenset(
    {
        "pods", "services", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes",
        "podtemplates", "resourcequotas", "limitranges",
    }
)  # fmt: skip
"""Built-in resources whose deletion answers with the object instead of a Status."""


def delete(call: Call, writer: Writer) -> Json:
    """Delete one object, or mark it as being deleted."""
    record = writer.state.record(call)
    return _delete_record(call, writer, record)


def _delete_record(call: Call, writer: Writer, record: Record) -> Json:
    resource = call.resource
    _check_preconditions(call, record)
    obj = writer.state.current(resource, record)
    metadata = obj["metadata"]
    _add_propagation(call, metadata)
    grace = _grace(call, resource, obj)
    waits = bool(metadata.get("finalizers")) or grace > 0 or _has_content(resource, obj)
    if not waits:
        if resource.plural == "pods" and resource.custom is None:
            _mark(resource, obj, 0)
        if not call.is_dry_run:
            writer.state.delete(resource, obj)
            for listener in writer.listeners:
                listener(resource, obj)
        return _answer(resource, obj)
    before = writer.state.current(resource, record)
    _mark(resource, obj, grace)
    if obj != before and not call.is_dry_run:
        writer.state.write(resource, obj, "MODIFIED")
        for listener in writer.listeners:
            listener(resource, obj)
    return obj


def _answer(resource: Resource, obj: Json) -> Json:
    if resource.custom is None and resource.plural in _RETURNED:
        return obj
    metadata = obj["metadata"]
    details = {
        "name": metadata["name"],
        "group": resource.group,
        "kind": resource.plural,
        "uid": metadata["uid"],
    }
    return success({key: value for key, value in details.items() if value})


def _check_preconditions(call: Call, record: Record) -> None:
    wanted = call.options.get("preconditions") or {}
    resource = call.resource
    for key, actual, label, fate in (
        ("uid", record.uid, "UID", "deleted and then recreated"),
        ("resourceVersion", str(record.revision), "ResourceVersion", "modified"),
    ):
        if wanted.get(key) and wanted[key] != actual:
            why = (
                f"the {label} in the precondition ({wanted[key]}) does not match the {label} in"
                f" record ({actual}). The object might have been {fate}"
            )
            raise conflict(resource.group, resource.kind, record.name, why)


def _add_propagation(call: Call, metadata: Json) -> None:
    policy = call.options.get("propagationPolicy") or call.query.get("propagationPolicy")
    if call.options.get("orphanDependents") is True:
        policy = "Orphan"
    if policy not in (None, "Foreground", "Background", "Orphan"):
        raise _unknown_policy(policy)
    name = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(policy or "")
    if name is None:
        return
    finalizers = list(metadata.get("finalizers") or ())
    if name not in finalizers:
        metadata["finalizers"] = [*finalizers, name]


def _unknown_policy(policy: str) -> ApiError:
    names = '"Foreground", "Background", "Orphan", "nil"'
    text = f'Unsupported value: "{policy}": supported values: {names}'
    error = cause("FieldValueNotSupported", "propagationPolicy", text)
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {text}'
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions", "causes": [error]}
    return ApiError(422, "Invalid", message, details=details)


def _grace(call: Call, resource: Resource, obj: Json) -> int:
    """Seconds that a pod gets to stop; everything else goes at once."""
    if resource.plural != "pods" or resource.custom is not None:
        return 0
    spec, status, metadata = obj["spec"], obj.get("status") or {}, obj["metadata"]
    asked = call.options.get("gracePeriodSeconds")
    if asked is None and call.query.get("gracePeriodSeconds"):
        asked = int(call.query["gracePeriodSeconds"])
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    grace = spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked
    if metadata.get("deletionTimestamp"):
        running = int(metadata.get("deletionGracePeriodSeconds", 0))
        grace = running if asked is None else min(running, grace)
    return int(grace)


def _has_content(resource: Resource, obj: Json) -> bool:
    if resource.custom is not None:
        return False
    if resource.plural == "namespaces":
        return bool(obj["spec"].get("finalizers"))
    return False


def _mark(resource: Resource, obj: Json, grace: int) -> None:
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = now_text(grace)
        is_namespace = resource.plural == "namespaces" and resource.custom is None
        if not is_namespace:
            metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
        if is_namespace:
            obj["status"]["phase"] = "Terminating"
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionGracePeriodSeconds"] = grace
        metadata["deletionTimestamp"] = now_text(grace)


def delete_collection(call: Call, writer: Writer, selector: Selector) -> Json:
    """Delete all selected objects; the answer is the list of what they were."""
    resource, state = call.resource, writer.state
    collection = state.storage.collection(resource.storage_key)
    hit = [record for record in collection.records(call.namespace) if selector.matches(record)]
    for record in hit:
        _delete_record(call, writer, record)
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.group_version,
        "metadata": {"resourceVersion": str(state.storage.revision)},
        "items": [state.current(resource, record) for record in hit],
    }


def sweep_custom_objects(writer: Writer, crd: Json) -> bool:
    """Delete the objects of a CRD that is going away; returns whether none is left."""
    resources = custom_resources.resources_of(crd)
    if not resources:
        return True
    collection = writer.state.storage.collection(resources[0].storage_key)
    stored = next(
        (r for r in resources if r.version == (r.custom or {})["storageVersion"]), resources[0]
    )
    call = Call(user=User(name="system:apiserver"), resource=stored)
    for record in collection.records():
        _delete_record(call, writer, record)
    return len(collection) == 0
