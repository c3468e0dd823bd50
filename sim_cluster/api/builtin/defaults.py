"""Defaults of the built-in kinds, where clients and controllers rely on them."""

import base64
from collections.abc import Callable
from typing import Any

from sim_cluster.api.builtin.pod_defaults import fill, pod_spec
from sim_cluster.api.errors import Json


def _template(spec: Json) -> None:
    template = spec.get("template")
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        pod_spec(template.setdefault("spec", {}))


def _pod(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    fill(spec, {"enableServiceLinks": True})


def _deployment(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    fill(
        spec,
        {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}},
    )
    strategy = spec["strategy"]
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate") or {}
        fill(rolling, {"maxUnavailable": "25%", "maxSurge": "25%"})
        strategy["rollingUpdate"] = rolling


def _stateful_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    fill(
        spec,
        {
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
        },
    )
    fill(spec["updateStrategy"], {"type": "RollingUpdate"})
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        rolling = spec["updateStrategy"].setdefault("rollingUpdate", {})
        fill(rolling, {"partition": 0, "maxUnavailable": 1})


def _replica_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    fill(spec, {"replicas": 1})


def _replication_controller(obj: Json) -> None:
    _replica_set(obj)
    spec = obj["spec"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _daemon_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    fill(spec, {"revisionHistoryLimit": 10, "updateStrategy": {}})
    fill(spec["updateStrategy"], {"type": "RollingUpdate"})
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        rolling = spec["updateStrategy"].setdefault("rollingUpdate", {})
        fill(rolling, {"maxUnavailable": 1, "maxSurge": 0})


def _job_spec(spec: Json) -> None:
    _template(spec)
    fill(
        spec,
        {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "manualSelector": False,
        },
    )
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, {"parallelism": 1})


def _job(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _job_spec(spec)


def _cron_job(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    template = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    _template(template)
    fill(
        spec,
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
    )


def _service(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    for port in spec.get("ports") or ():
        fill(port, {"protocol": "TCP", "targetPort": port.get("port")})
    if spec["type"] != "ExternalName":
        fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        fill(spec, {"allocateLoadBalancerNodePorts": True})


def _autoscaler(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _secret(obj: Json) -> None:
    fill(obj, {"type": "Opaque"})
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


def _namespace(obj: Json) -> None:
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        labels["kubernetes.io/metadata.name"] = metadata["name"]
        metadata["labels"] = labels
    fill(obj, {"spec": {}, "status": {}})
    fill(obj["status"], {"phase": "Active"})


def _role_binding(obj: Json) -> None:
    ref = obj.setdefault("roleRef", {})
    fill(ref, {"apiGroup": "rbac.authorization.k8s.io"})
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            fill(subject, {"apiGroup": "rbac.authorization.k8s.io"})


def _network_policy(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, {"podSelector": {}})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            fill(port, {"protocol": "TCP"})


def _node(obj: Json) -> None:
    status = obj.setdefault("status", {})
    obj.setdefault("spec", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _storage_class(obj: Json) -> None:
    fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _volume_claim(obj: Json) -> None:
    fill(obj.setdefault("spec", {}), {"volumeMode": "Filesystem"})
    fill(obj.setdefault("status", {}), {"phase": "Pending"})


def _priority_class(obj: Json) -> None:
    fill(obj, {"preemptionPolicy": "PreemptLowerPriority"})


def _event(obj: Json) -> None:
    for name in ("eventTime", "firstTimestamp", "lastTimestamp"):
        obj.setdefault(name, None)
    fill(obj, {"reportingComponent": "", "reportingInstance": "", "source": {}})


def _endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        fill(port, {"name": "", "protocol": "TCP"})


def _endpoints(obj: Json) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill(port, {"protocol": "TCP"})


_DEFAULTS: dict[tuple[str, str], Callable[[Any], None]] = {
    ("", "pods"): _pod,
    ("", "replicationcontrollers"): _replication_controller,
    ("", "services"): _service,
    ("", "secrets"): _secret,
    ("", "namespaces"): _namespace,
    ("", "nodes"): _node,
    ("", "events"): _event,
    ("", "endpoints"): _endpoints,
    ("", "persistentvolumeclaims"): _volume_claim,
    ("apps", "deployments"): _deployment,
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "replicasets"): _replica_set,
    ("apps", "daemonsets"): _daemon_set,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
    ("rbac.authorization.k8s.io", "rolebindings"): _role_binding,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _role_binding,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("storage.k8s.io", "storageclasses"): _storage_class,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
}


def fill_defaults(group: str, plural: str, obj: Json) -> None:
    """Fill the defaults of a built-in kind, in place."""
    complete = _DEFAULTS.get((group, plural))
    if complete is not None:
        complete(obj)
