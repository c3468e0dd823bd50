"""The columns in which `kubectl get` shows built-in kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sim_cluster.api.builtin import cells
from sim_cluster.api.builtin.ages import since
from sim_cluster.api.builtin.pod_status import ready_count, shown_status
from sim_cluster.api.errors import Json


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, how a cell is made, and from which detail on it is shown."""

    name: str
    value: Callable[[Json], Any]
    kind: str = "string"
    priority: int = 0


def age_of(obj: Json) -> str:
    """The age of an object."""
    return since(obj["metadata"].get("creationTimestamp"))


AGE = Column("Age", age_of)


_TEMPLATE = (
    Column("Containers", lambda o: cells.containers(o, "name"), priority=1),
    Column("Images", lambda o: cells.containers(o, "image"), priority=1),
)
_SELECTOR = Column("Selector", cells.selector, priority=1)

COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "pods"): (
        Column("Ready", ready_count),
        Column("Status", shown_status),
        Column("Restarts", cells.restarts),
        AGE,
        Column("IP", lambda o: cells.status_of(o).get("podIP") or "<none>", priority=1),
        Column("Node", lambda o: cells.spec_of(o).get("nodeName") or "<none>", priority=1),
        Column(
            "Nominated Node",
            lambda o: cells.status_of(o).get("nominatedNodeName") or "<none>",
            priority=1,
        ),
        Column("Readiness Gates", lambda _: "<none>", priority=1),
    ),
    ("", "services"): (
        Column("Type", lambda o: cells.spec_of(o).get("type", "")),
        Column("Cluster-IP", lambda o: cells.spec_of(o).get("clusterIP") or "<none>"),
        Column("External-IP", cells.external_address),
        Column("Port(s)", cells.ports),
        AGE,
        Column(
            "Selector", lambda o: cells.labels_text(cells.spec_of(o).get("selector")), priority=1
        ),
    ),
    ("", "nodes"): (
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        AGE,
        Column("Version", cells.node_info("kubeletVersion")),
        Column("Internal-IP", cells.node_address("InternalIP"), priority=1),
        Column("External-IP", cells.node_address("ExternalIP"), priority=1),
        Column("OS-Image", cells.node_info("osImage"), priority=1),
        Column("Kernel-Version", cells.node_info("kernelVersion"), priority=1),
        Column("Container-Runtime", cells.node_info("containerRuntimeVersion"), priority=1),
    ),
    ("", "namespaces"): (Column("Status", lambda o: cells.status_of(o).get("phase", "")), AGE),
    ("", "configmaps"): (
        Column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
        AGE,
    ),
    ("", "secrets"): (
        Column("Type", lambda o: o.get("type", "")),
        Column("Data", cells.count("data")),
        AGE,
    ),
    ("", "serviceaccounts"): (AGE,),
    ("", "endpoints"): (Column("Endpoints", cells.endpoint_addresses), AGE),
    ("", "events"): (
        Column("Last Seen", cells.event_last_seen),
        Column("Type", lambda o: o.get("type", "")),
        Column("Reason", lambda o: o.get("reason", "")),
        Column("Object", cells.event_object),
        Column("Message", lambda o: str(o.get("message") or o.get("note") or "").strip()),
    ),
    ("events.k8s.io", "events"): (
        Column("Last Seen", cells.event_last_seen),
        Column("Type", lambda o: o.get("type", "")),
        Column("Reason", lambda o: o.get("reason", "")),
        Column("Object", cells.event_object),
        Column("Message", lambda o: str(o.get("message") or o.get("note") or "").strip()),
    ),
    ("apps", "deployments"): (
        Column("Ready", cells.ready_of),
        Column("Up-to-date", cells.number("status", "updatedReplicas"), "integer"),
        Column("Available", cells.number("status", "availableReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("apps", "replicasets"): (
        Column("Desired", cells.number("spec", "replicas"), "integer"),
        Column("Current", cells.number("status", "replicas"), "integer"),
        Column("Ready", cells.number("status", "readyReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("apps", "statefulsets"): (Column("Ready", cells.ready_of), AGE, *_TEMPLATE),
    ("apps", "daemonsets"): (
        Column("Desired", cells.number("status", "desiredNumberScheduled"), "integer"),
        Column("Current", cells.number("status", "currentNumberScheduled"), "integer"),
        Column("Ready", cells.number("status", "numberReady"), "integer"),
        Column("Up-to-date", cells.number("status", "updatedNumberScheduled"), "integer"),
        Column("Available", cells.number("status", "numberAvailable"), "integer"),
        Column(
            "Node Selector",
            lambda o: cells.labels_text(
                cells.spec_of(cells.spec_of(o).get("template") or {}).get("nodeSelector")
            ),
        ),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("coordination.k8s.io", "leases"): (
        Column("Holder", lambda o: cells.spec_of(o).get("holderIdentity") or ""),
        AGE,
    ),
    ("discovery.k8s.io", "endpointslices"): (
        Column("AddressType", lambda o: o.get("addressType", "")),
        Column("Ports", cells.slice_ports),
        Column("Endpoints", cells.slice_addresses),
        AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        Column("Min Available", cells.bound("minAvailable")),
        Column("Max Unavailable", cells.bound("maxUnavailable")),
        Column("Allowed Disruptions", cells.number("status", "disruptionsAllowed"), "integer"),
        AGE,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        Column("Reference", cells.reference),
        Column("Targets", lambda _: "<unknown>"),
        Column("MinPods", lambda o: str(cells.spec_of(o).get("minReplicas", "<unset>"))),
        Column("MaxPods", cells.number("spec", "maxReplicas"), "integer"),
        Column("Replicas", cells.number("status", "currentReplicas"), "integer"),
        AGE,
    ),
    ("networking.k8s.io", "networkpolicies"): (
        Column(
            "Pod-Selector",
            lambda o: cells.labels_text(
                (cells.spec_of(o).get("podSelector") or {}).get("matchLabels")
            ),
        ),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "roles"): (
        Column("Created At", lambda o: o["metadata"].get("creationTimestamp")),
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        Column("Role", cells.role_ref),
        AGE,
        Column("Users", cells.subjects("User"), priority=1),
        Column("Groups", cells.subjects("Group"), priority=1),
        Column("ServiceAccounts", cells.subjects("ServiceAccount"), priority=1),
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        Column("Role", cells.role_ref),
        AGE,
        Column("Users", cells.subjects("User"), priority=1),
        Column("Groups", cells.subjects("Group"), priority=1),
        Column("ServiceAccounts", cells.subjects("ServiceAccount"), priority=1),
    ),
    ("batch", "jobs"): (
        Column(
            "Status", lambda o: "Complete" if cells.status_of(o).get("succeeded") else "Running"
        ),
        Column(
            "Completions",
            lambda o: (
                f"{cells.status_of(o).get('succeeded', 0)}/{cells.spec_of(o).get('completions', 1)}"
            ),
        ),
        Column("Duration", lambda o: since(cells.status_of(o).get("startTime"))),
        AGE,
    ),
}
