"""Parts of objects with URLs of their own: scale, binding, eviction, finalize, token."""

from copy import deepcopy
from typing import Any

from sim_cluster.api import deleting, patching
from sim_cluster.api.authentication import Authenticator
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import ApiError, Json, bad_request, conflict
from sim_cluster.api.objects import now_text
from sim_cluster.api.selectors import matches_labels, selector_text
from sim_cluster.api.storage import Record
from sim_cluster.api.writing import Writer


def _scale_paths(call: Call) -> tuple[str, str, str]:
    if call.resource.custom is None:
        return ".spec.replicas", ".status.replicas", ""
    scale = call.resource.custom["subresources"]["scale"]
    return (
        scale["specReplicasPath"],
        scale["statusReplicasPath"],
        scale.get("labelSelectorPath", ""),
    )


def _at(obj: Any, path: str) -> Any:
    for part in path.lstrip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _put_at(obj: Json, path: str, value: Any) -> None:
    *parents, last = path.lstrip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def read_scale(call: Call, obj: Json) -> Json:
    """The Scale of an object."""
    wanted, actual, selector_path = _scale_paths(call)
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec_replicas = _at(obj, wanted)
    scale: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": spec_replicas} if spec_replicas else {},
        "status": {"replicas": _at(obj, actual) or 0},
    }
    if call.resource.custom is None:
        selector = selector_text((obj.get("spec") or {}).get("selector"))
    else:
        selector = str(_at(obj, selector_path) or "") if selector_path else ""
        if spec_replicas is None:
            path = call.resource.custom["subresources"]["scale"]["specReplicasPath"]
            message = f'the spec replicas field "{path}" does not exist'
            raise ApiError(500, "InternalError", f"Internal error occurred: {message}")
    if selector:
        scale["status"]["selector"] = selector
    return scale


def write_scale(call: Call, writer: Writer, scale: Json, record: Record) -> Json:
    """Change the number of replicas through the Scale."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot'
            " unmarshal into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        error = {"reason": "FieldValueInvalid", "message": text, "field": "spec.replicas"}
        message = f'Scale.autoscaling "{call.name}" is invalid: spec.replicas: {text}'
        details = {"name": call.name, "group": "autoscaling", "kind": "Scale", "causes": [error]}
        raise ApiError(422, "Invalid", message, details=details)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version and version != str(record.revision):
        raise conflict(call.resource.group, call.resource.plural, call.name)
    obj = writer.state.current(call.resource, record)
    _put_at(obj, _scale_paths(call)[0], replicas)
    return read_scale(call, writer.update(call, obj, record))


def patch_scale(call: Call, writer: Writer, content_type: str, body: bytes) -> Json:
    """Patch the Scale as if it were an object."""
    record = writer.state.record(call)
    scale = read_scale(call, writer.state.current(call.resource, record))
    sent = patching.parse(content_type, body)
    if content_type == patching.APPLY or (
        content_type == patching.STRATEGIC_MERGE and call.resource.custom is None
    ):
        content_type = patching.MERGE_PATCH
    patched = patching.patch_object(deepcopy(scale), content_type, sent, None)
    return write_scale(call, writer, patched, record)


def bind(call: Call, writer: Writer, binding: Json) -> Json:
    """Assign a pod to a node."""
    record = writer.state.record(call)
    obj = writer.state.current(call.resource, record)
    if obj["spec"].get("nodeName"):
        why = f'pod {call.name} is already assigned to node "{obj["spec"]["nodeName"]}"'
        raise conflict("", "pods/binding", call.name, why)
    if obj["metadata"].get("deletionTimestamp"):
        raise conflict("", "pods/binding", call.name, f"pod {call.name} is being deleted")
    obj["spec"]["nodeName"] = binding["target"]["name"]
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [c for c in conditions if c["type"] != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": now_text(),
        }
    )
    if not call.is_dry_run:
        writer.state.write(call.resource, obj, "MODIFIED")
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(call: Call, writer: Writer, eviction: Json) -> Json:
    """Delete a pod, unless a PodDisruptionBudget forbids it."""
    record = writer.state.record(call)
    budgets = writer.state.storage.collection(("policy", "poddisruptionbudgets"))
    for budget_record in budgets.records(call.namespace):
        budget = budget_record.parsed()
        if not matches_labels(budget["spec"].get("selector"), record.labels):
            continue
        if (budget.get("status") or {}).get("disruptionsAllowed", 0) > 0:
            _spend(writer, budget)
            continue
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        text = f"The disruption budget {budget_record.name} does not allow evicting pods now"
        details = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
        raise ApiError(429, "TooManyRequests", message, details=details)
    call.options = {**call.options, **(eviction.get("deleteOptions") or {})}
    deleting.delete(call, writer)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _spend(writer: Writer, budget: Json) -> None:
    resource = writer.state.registry.find("policy", "v1", "poddisruptionbudgets")
    if resource is not None:
        budget["status"]["disruptionsAllowed"] -= 1
        writer.state.write(resource, budget, "MODIFIED")


def finalize(call: Call, writer: Writer, obj: Json) -> Json:
    """Replace the finalizers of a namespace; the last one gone removes it."""
    record = writer.state.record(call)
    current = writer.state.current(call.resource, record)
    current["spec"]["finalizers"] = (obj.get("spec") or {}).get("finalizers") or []
    if not current["spec"]["finalizers"]:
        current["spec"].pop("finalizers")
    return writer.update(call, current, record)


def request_token(call: Call, writer: Writer, authenticator: Authenticator, request: Json) -> Json:
    """Issue a token of a ServiceAccount."""
    record = writer.state.record(call)
    spec = request.get("spec") or {}
    lifetime_s = spec.get("expirationSeconds") or 3600
    if lifetime_s < 600:
        text = f"Invalid value: {lifetime_s}: may not specify a duration less than 10 minutes"
        error = {"reason": "FieldValueInvalid", "message": text, "field": "spec.expirationSeconds"}
        message = f'TokenRequest.authentication.k8s.io "{call.name}" is invalid: '
        raise ApiError(
            422, "Invalid", f"{message}spec.expirationSeconds: {text}", details={"causes": [error]}
        )
    audiences = spec.get("audiences") or ["https://kubernetes.default.svc.cluster.local"]
    token = authenticator.issue(
        namespace=call.namespace,
        name=call.name,
        uid=record.uid,
        audiences=audiences,
        lifetime_s=lifetime_s,
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": call.name,
            "namespace": call.namespace,
            "creationTimestamp": now_text(),
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": now_text(lifetime_s)},
    }
