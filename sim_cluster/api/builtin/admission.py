"""What the server adds to, or refuses of, built-in objects while they are written."""

import ipaddress
from collections.abc import Iterable

from sim_cluster.api.errors import Json, cause, forbidden, invalid
from sim_cluster.api.storage import Storage

SERVICE_RANGE = ipaddress.IPv4Network("10.96.0.0/16")
"""Cluster IPs of services, the default range of kubeadm."""

_STORED_ONLY = {
    "resourcequotas": "ResourceQuota",
    "limitranges": "LimitRange",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
    "mutatingadmissionpolicies": "MutatingAdmissionPolicy",
}


def warnings_for(plural: str) -> list[str]:
    """What is stored without effect, said aloud."""
    kind = _STORED_ONLY.get(plural)
    if kind is None:
        return []
    return [f"the in-memory API server stores {kind} objects but does not enforce them"]


def admit_pod(storage: Storage, obj: Json) -> None:
    """ServiceAccount, priority and default tolerations of a new pod."""
    spec, namespace = obj["spec"], obj["metadata"]["namespace"]
    account = spec.get("serviceAccountName") or "default"
    if storage.collection(("", "serviceaccounts")).get(namespace, account) is None:
        why = (
            f"error looking up service account {namespace}/{account}:"
            f' serviceaccount "{account}" not found'
        )
        raise forbidden("", "pods", obj["metadata"].get("name", ""), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    _admit_priority(storage, obj)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None)
            for t in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )


def _admit_priority(storage: Storage, obj: Json) -> None:
    spec = obj["spec"]
    name = spec.get("priorityClassName")
    priority, policy = 0, "PreemptLowerPriority"
    if name in {"system-node-critical", "system-cluster-critical"}:
        priority = 2_000_001_000 if name == "system-node-critical" else 2_000_000_000
    elif name:
        record = storage.collection(("scheduling.k8s.io", "priorityclasses")).get("", name)
        if record is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("", "pods", obj["metadata"].get("name", ""), why)
        found = record.parsed()
        priority, policy = found["value"], found.get("preemptionPolicy", policy)
    spec.setdefault("priority", priority)
    spec.setdefault("preemptionPolicy", policy)


def quality_of_service(spec: Json) -> str:
    """The QoS class of a pod."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    amounts = [container.get("resources") or {} for container in containers]
    compute = ("cpu", "memory")
    if not any(
        name in (r.get(part) or {})
        for r in amounts
        for part in ("limits", "requests")
        for name in compute
    ):
        return "BestEffort"
    for resources in amounts:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if any(
            name not in limits or requests.get(name, limits[name]) != limits[name]
            for name in compute
        ):
            return "Burstable"
    return "Guaranteed"


def allocate_service_address(storage: Storage, obj: Json) -> None:
    """Give a service its cluster IP and its node ports."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    others = [record.parsed() for record in storage.collection(("", "services")).records()]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address(record["spec"].get("clusterIP", "") for record in others)
    elif spec["clusterIP"] != "None":
        taken = {
            other["spec"].get("clusterIP")
            for other in others
            if other["metadata"]["uid"] != obj["metadata"]["uid"]
        }
        if spec["clusterIP"] in taken:
            text = (
                f'Invalid value: "{spec["clusterIP"]}": failed to allocate IP'
                f" {spec['clusterIP']}: provided IP is already allocated"
            )
            error = cause("FieldValueInvalid", "spec.clusterIPs", text)
            raise invalid("", "Service", obj["metadata"]["name"], [error])
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec.get("type") in {"NodePort", "LoadBalancer"}:
        used = {port.get("nodePort") for o in others for port in o["spec"].get("ports") or ()}
        free = iter(number for number in range(30000, 32768) if number not in used)
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(free)


def _free_address(taken: Iterable[str]) -> str:
    used = set(taken)
    hosts = SERVICE_RANGE.hosts()
    next(hosts)  # the first one belongs to the service `kubernetes`
    return next(str(address) for address in hosts if str(address) not in used)
