"""
Service discovery for Prometheus: the simulated pods as `kubernetes_sd_configs` names them.

Debian's Prometheus is built without Kubernetes discovery; over `http_sd_configs` the same relabel
rules work on the same `__meta_kubernetes_*` labels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_IN_A_LABEL: Final = re.compile(r"[^a-zA-Z0-9_]")


def pod_target(
    pod: Mapping[str, Any], *, port: int, address: str | None, control: str
) -> dict[str, Any]:
    """
    Write the discovery entry of one pod.

    `address` is the pod's own; None if it has no listener, and is scraped through the control
    server's `host:port`.
    """
    metadata, status = pod["metadata"], pod.get("status", {})
    containers = pod["spec"].get("containers") or ({"name": "", "image": ""},)
    labels = {
        "namespace": metadata["namespace"],
        "pod_name": metadata["name"],
        "pod_uid": metadata["uid"],
        "pod_ip": status.get("podIP", ""),
        "pod_host_ip": status.get("hostIP", ""),
        "pod_phase": status.get("phase", ""),
        "pod_ready": _ready(status),
        "pod_node_name": pod["spec"].get("nodeName", ""),
        "pod_container_name": containers[0]["name"],
        "pod_container_image": containers[0].get("image", ""),
        "pod_container_init": "false",
        "pod_container_port_number": str(port),
        "pod_container_port_name": _port_name(containers[0], port),
        "pod_container_port_protocol": "TCP",
    }
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            labels["pod_controller_kind"] = owner["kind"]
            labels["pod_controller_name"] = owner["name"]
    for kind in ("label", "annotation"):
        for name, value in (metadata.get(f"{kind}s") or {}).items():
            plain = _NOT_IN_A_LABEL.sub("_", name)
            labels[f"pod_{kind}_{plain}"] = value
            labels[f"pod_{kind}present_{plain}"] = "true"
    named = {f"__meta_kubernetes_{name}": value for name, value in labels.items()}
    if address is not None:
        return {"targets": [f"{address}:{port}"], "labels": named}
    named["__metrics_path__"] = f"/pods/{metadata['namespace']}/{metadata['name']}/metrics"
    return {"targets": [control], "labels": named}


def gateway_target(namespace: str, name: str, *, control: str) -> dict[str, Any]:
    """Write the entry of a router, which has no pod: as the pod that a gateway would be."""
    labels = {
        "namespace": namespace,
        "pod_name": f"{name}-gateway",
        "pod_phase": "Running",
        "pod_ready": "true",
        "pod_container_name": "gateway",
        "pod_label_app": f"{name}-gateway",
        "pod_labelpresent_app": "true",
    }
    named = {f"__meta_kubernetes_{label}": value for label, value in labels.items()}
    named["__metrics_path__"] = f"/gateways/{namespace}/{name}/metrics"
    return {"targets": [control], "labels": named}


def _ready(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready":
            return str(condition["status"]).lower()
    return "unknown"


def _port_name(container: Mapping[str, Any], port: int) -> str:
    for one in container.get("ports") or ():
        if one.get("containerPort") == port:
            return str(one.get("name", ""))
    return ""
