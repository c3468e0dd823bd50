"""Defaults of the built-in kinds, where clients and controllers rely on them."""

from collections.abc import Callable
from typing import Any

from sim_cluster.api.errors import Json


def _fill(target: Json, defaults: Json) -> None:
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = dict(value) if isinstance(value, dict) else value


def _container(container: Json) -> None:
    image = container.get("image", "")
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    _fill(
        container,
        {
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always" if latest else "IfNotPresent",
        },
    )
    for port in container.get("ports") or ():
        _fill(port, {"protocol": "TCP"})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            _probe(probe)
    for variable in container.get("env") or ():
        ref = (variable.get("valueFrom") or {}).get("fieldRef")
        if ref is not None:
            _fill(ref, {"apiVersion": "v1"})
    resources = container["resources"]
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _probe(probe: Json) -> None:
    _fill(
        probe, {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
                "failureThreshold": 3}
    )
    if (get := probe.get("httpGet")) is not None:
        _fill(get, {"path": "/", "scheme": "HTTP"})
    if (grpc := probe.get("grpc")) is not None:
        _fill(grpc, {"service": ""})


_VOLUME_MODES = ("secret", "configMap", "projected", "downwardAPI")


def pod_spec(spec: Json) -> None:
    """Defaults of a pod, on its own or in a template."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _container(container)
    for volume in spec.get("volumes") or ():
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}
        for source in _VOLUME_MODES:
            if volume.get(source) is not None:
                _fill(volume[source], {"defaultMode": 0o644})
        if volume.get("hostPath") is not None:
            _fill(volume["hostPath"], {"type": ""})
    _fill(
        spec,
        {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    )
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]


def _template(spec: Json) -> None:
    template = spec.get("template")
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        pod_spec(template.setdefault("spec", {}))


def _pod(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    _fill(spec, {"enableServiceLinks": True})


def _deployment(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(
        spec,
        {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}},
    )
    strategy = spec["strategy"]
    _fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate") or {}
        _fill(rolling, {"maxUnavailable": "25%", "maxSurge": "25%"})
        strategy["rollingUpdate"] = rolling


def _stateful_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(
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
    _fill(spec["updateStrategy"], {"type": "RollingUpdate"})
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        rolling = spec["updateStrategy"].setdefault("rollingUpdate", {})
        _fill(rolling, {"partition": 0})


def _replica_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, {"replicas": 1})
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _replication_controller(obj: Json) -> None:
    _replica_set(obj)
    spec = obj["spec"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _daemon_set(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, {"revisionHistoryLimit": 10, "updateStrategy": {}})
    _fill(spec["updateStrategy"], {"type": "RollingUpdate"})
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        rolling = spec["updateStrategy"].setdefault("rollingUpdate", {})
        _fill(rolling, {"maxUnavailable": 1, "maxSurge": 0})


def _job_spec(spec: Json) -> None:
    _template(spec)
    _fill(
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
    _fill(spec, {"parallelism": 1})


def _job(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _job_spec(spec)
    uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
    if not spec.get("selector") and uid:
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels[f"{prefix}controller-uid"] = uid
            labels[f"{prefix}job-name"] = name


def _cron_job(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    template = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    _template(template)
    _fill(
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
    _fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    for port in spec.get("ports") or ():
        _fill(port, {"protocol": "TCP", "targetPort": port.get("port")})
    if spec["type"] != "ExternalName":
        _fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        _fill(spec, {"allocateLoadBalancerNodePorts": True})


def _autoscaler(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _secret(obj: Json) -> None:
    _fill(obj, {"type": "Opaque"})
    plain = obj.pop("stringData", None)
    if plain:
        import base64  # noqa: PLC0415 - only secrets with plain text need it

        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


def _namespace(obj: Json) -> None:
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        labels["kubernetes.io/metadata.name"] = metadata["name"]
        metadata["labels"] = labels
    _fill(obj, {"spec": {}, "status": {}})
    _fill(obj["status"], {"phase": "Active"})


def _role_binding(obj: Json) -> None:
    ref = obj.setdefault("roleRef", {})
    _fill(ref, {"apiGroup": "rbac.authorization.k8s.io"})
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            _fill(subject, {"apiGroup": "rbac.authorization.k8s.io"})


def _network_policy(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"podSelector": {}})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            _fill(port, {"protocol": "TCP"})


def _node(obj: Json) -> None:
    status = obj.setdefault("status", {})
    obj.setdefault("spec", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _storage_class(obj: Json) -> None:
    _fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _volume_claim(obj: Json) -> None:
    _fill(obj.setdefault("spec", {}), {"volumeMode": "Filesystem"})
    _fill(obj.setdefault("status", {}), {"phase": "Pending"})


def _priority_class(obj: Json) -> None:
    _fill(obj, {"preemptionPolicy": "PreemptLowerPriority"})


def _endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        _fill(port, {"name": "", "protocol": "TCP"})


def _endpoints(obj: Json) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            _fill(port, {"protocol": "TCP"})


_DEFAULTS: dict[tuple[str, str], Callable[[Any], None]] = {
    ("", "pods"): _pod,
    ("", "replicationcontrollers"): _replication_controller,
    ("", "services"): _service,
    ("", "secrets"): _secret,
    ("", "namespaces"): _namespace,
    ("", "nodes"): _node,
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
    fill = _DEFAULTS.get((group, plural))
    if fill is not None:
        fill(obj)
