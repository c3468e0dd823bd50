"""What becomes of an object between what was sent and what is stored."""

from copy import deepcopy

from sim_cluster.api import custom_resources, objects
from sim_cluster.api.builtin import strategy
from sim_cluster.api.calls import Call
from sim_cluster.api.decoding import complete_custom
from sim_cluster.api.errors import Json, cause, invalid
from sim_cluster.api.resources import Resource
from sim_cluster.api.state import State

_CRDS = "customresourcedefinitions"


def complete_new(state: State, call: Call, obj: Json) -> None:
    """Defaults and checks of a new object."""
    resource = call.resource
    if resource.plural == _CRDS and resource.custom is None:
        custom_resources.default_crd(obj)
        custom_resources.check_crd(obj)
        obj["status"] = {}
        custom_resources.establish(obj)
    elif resource.custom is None:
        strategy.prepare_create(call, obj, state.storage)
    else:
        if "status" in resource.subresources:
            obj.pop("status", None)
        complete_custom(resource, obj, state.node(resource), None)


def complete_changed(state: State, call: Call, obj: Json, old: Json) -> None:
    """Defaults and checks of a changed object."""
    resource = call.resource
    if resource.plural == _CRDS and resource.custom is None:
        if call.subresource != "status":
            obj["status"] = deepcopy(old.get("status") or {})
            custom_resources.default_crd(obj)
            custom_resources.check_crd(obj)
            custom_resources.establish(obj)
    elif resource.custom is None:
        strategy.prepare_update(call, obj, old, state.storage)
    else:
        _keep_apart(call, obj, old)
        complete_custom(resource, obj, state.node(resource), old)


def _keep_apart(call: Call, obj: Json, old: Json) -> None:
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


def check_metadata(call: Call, obj: Json, old: Json) -> None:
    """Refuse bad labels, and new finalizers of what is going away; drop what is empty."""
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


def bump_generation(resource: Resource, obj: Json, old: Json) -> None:
    """Count a change of what is asked for."""
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


def is_finished(obj: Json) -> bool:
    """Whether nothing holds an object any more that is going away."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return not obj["spec"].get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds", 0)
