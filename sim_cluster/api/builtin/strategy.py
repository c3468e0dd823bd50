"""How each built-in kind is written: what a client may set through which URL."""

from collections.abc import Callable

from sim_cluster.api.builtin import admission
from sim_cluster.api.builtin.defaults import fill_defaults
from sim_cluster.api.builtin.immutability import immutable_errors
from sim_cluster.api.builtin.validation import errors_of
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import Json, invalid
from sim_cluster.api.resources import Resource
from sim_cluster.api.storage import Storage


def _new_pod(obj: Json, storage: Storage) -> None:
    admission.admit_pod(storage, obj)
    quality = admission.quality_of_service(obj["spec"])
    obj["status"] = {"phase": "Pending", "qosClass": quality}


def _new_namespace(obj: Json, _storage: Storage) -> None:
    obj["status"] = {"phase": "Active"}
    finalizers = obj["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _new_service(obj: Json, storage: Storage) -> None:
    obj["status"] = {"loadBalancer": {}}
    admission.allocate_service_address(storage, obj)


def _new_claim(obj: Json, _storage: Storage) -> None:
    obj["status"] = {"phase": "Pending"}


def _new_autoscaler(obj: Json, _storage: Storage) -> None:
    obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}


def _new_replica_set(obj: Json, _storage: Storage) -> None:
    obj["status"] = {"replicas": 0}


def _new_stateful_set(obj: Json, _storage: Storage) -> None:
    obj["status"] = {"replicas": 0, "availableReplicas": 0}


def _new_daemon_set(obj: Json, _storage: Storage) -> None:
    names = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    )
    obj["status"] = dict.fromkeys(names, 0)


def _new_budget(obj: Json, _storage: Storage) -> None:
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    obj["status"] = dict.fromkeys(names, 0)


def _new_job(obj: Json, _storage: Storage) -> None:
    """A job selects its pods by its own identity."""
    obj["status"] = {}
    uid, name, spec = obj["metadata"]["uid"], obj["metadata"]["name"], obj["spec"]
    if spec.get("manualSelector"):
        return
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    template = spec["template"].setdefault("metadata", {})
    labels = {**(template.get("labels") or {})}
    for prefix in ("batch.kubernetes.io/", ""):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    template["labels"] = labels
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _new_node(obj: Json, _storage: Storage) -> None:
    """A kubelet registers its node with its status."""
    obj.setdefault("status", {})


_NEW: dict[str, Callable[[Json, Storage], None]] = {
    "pods": _new_pod,
    "namespaces": _new_namespace,
    "services": _new_service,
    "persistentvolumeclaims": _new_claim,
    "horizontalpodautoscalers": _new_autoscaler,
    "replicasets": _new_replica_set,
    "nodes": _new_node,
    "statefulsets": _new_stateful_set,
    "daemonsets": _new_daemon_set,
    "poddisruptionbudgets": _new_budget,
    "jobs": _new_job,
}
"""What is added to new objects; the status of all others starts out empty."""


def fill_in(resource: Resource, obj: Json) -> None:
    """Fill the defaults of a kind."""
    fill_defaults(resource.group, resource.plural, obj)


def prepare_create(call: Call, obj: Json, storage: Storage) -> None:
    """Defaults, admission and checks of a new object."""
    resource = call.resource
    group, plural = resource.group, resource.plural
    fill_in(resource, obj)
    complete = _NEW.get(plural)
    if complete is not None:
        complete(obj, storage)
    elif "status" in resource.subresources:
        obj["status"] = {}
    call.warnings.extend(admission.warnings_for(plural))
    errors = errors_of(group, plural, resource.kind, obj)
    if errors:
        raise invalid(group, resource.kind, obj["metadata"]["name"], errors)


def prepare_update(call: Call, obj: Json, old: Json, storage: Storage) -> None:
    """Defaults and checks of a changed object; `status` and the rest are kept apart."""
    resource = call.resource
    group, plural = resource.group, resource.plural
    if call.subresource == "status":
        _keep_all_but_status(obj, old)
        return
    _keep_parts(call, obj, old)
    fill_defaults(group, plural, obj)
    if plural == "services":
        admission.allocate_service_address(storage, obj)
    errors = errors_of(group, plural, resource.kind, obj)
    errors += immutable_errors(group, plural, obj, old)
    if errors:
        raise invalid(group, resource.kind, obj["metadata"]["name"], errors)


def _keep_parts(call: Call, obj: Json, old: Json) -> None:
    """Put back what the object's own URL does not change."""
    plural = call.resource.plural
    if "status" in call.resource.subresources:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
    if plural == "namespaces" and call.subresource != "finalize":
        obj["spec"] = old["spec"]
    elif plural == "services":
        _keep_addresses(obj, old)
    elif plural == "pods":
        for name in ("nodeName", "priority", "preemptionPolicy", "tolerations"):
            if name in old["spec"]:
                obj["spec"].setdefault(name, old["spec"][name])


def _keep_all_but_status(obj: Json, old: Json) -> None:
    for name in list(obj):
        if name not in {"metadata", "status", "kind", "apiVersion"} and name not in old:
            del obj[name]
    for name, value in old.items():
        if name not in {"metadata", "status"}:
            obj[name] = value
    kept = ("ownerReferences", "finalizers")
    for name in kept:
        if name in old["metadata"]:
            obj["metadata"][name] = old["metadata"][name]
        else:
            obj["metadata"].pop(name, None)


def _keep_addresses(obj: Json, old: Json) -> None:
    spec, before = obj.setdefault("spec", {}), old["spec"]
    if spec.get("type") == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not spec.get(name) and before.get(name):
            spec[name] = before[name]
    ports = {port.get("port"): port for port in before.get("ports") or ()}
    if spec.get("type") in {"NodePort", "LoadBalancer"}:
        for port in spec.get("ports") or ():
            known = ports.get(port.get("port"), {})
            if not port.get("nodePort") and known.get("nodePort"):
                port["nodePort"] = known["nodePort"]
