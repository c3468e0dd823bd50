"""Defaults of pods, on their own or in the template of a workload."""

from sim_cluster.api.errors import Json


def fill(target: Json, defaults: Json) -> None:
    """Set what is absent."""
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = dict(value) if isinstance(value, dict) else value


def _container(container: Json) -> None:
    image = container.get("image", "")
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    fill(
        container,
        {
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always" if latest else "IfNotPresent",
        },
    )
    for port in container.get("ports") or ():
        fill(port, {"protocol": "TCP"})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            _probe(probe)
    for variable in container.get("env") or ():
        ref = (variable.get("valueFrom") or {}).get("fieldRef")
        if ref is not None:
            fill(ref, {"apiVersion": "v1"})
    resources = container["resources"]
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _probe(probe: Json) -> None:
    fill(
        probe,
        {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    )
    if (get := probe.get("httpGet")) is not None:
        fill(get, {"path": "/", "scheme": "HTTP"})
    if (grpc := probe.get("grpc")) is not None:
        fill(grpc, {"service": ""})


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
                fill(volume[source], {"defaultMode": 0o644})
        if volume.get("hostPath") is not None:
            fill(volume["hostPath"], {"type": ""})
    fill(
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
