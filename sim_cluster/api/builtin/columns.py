"""The columns in which `kubectl get` shows built-in kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sim_cluster.api.builtin.pod_status import ready_count, shown_status
from sim_cluster.api.errors import Json
from sim_cluster.api.selectors import selector_text


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, how a cell is made, and from which detail on it is shown."""

    name: str
    value: Callable[[Json], Any]
    kind: str = "string"
    priority: int = 0


def duration_text(seconds: float) -> str:
    """A duration the way kubectl shows ages: two units at most, fewer when it is long."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 2920 and days % 365 else f"{days // 365}y"


def since(text: str | None) -> str:
    """How long ago a time was."""
    if not text:
        return "<unknown>"
    then = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return duration_text((datetime.now(UTC) - then).total_seconds())


def age_of(obj: Json) -> str:
    """The age of an object."""
    return since(obj["metadata"].get("creationTimestamp"))


AGE = Column("Age", age_of)


def _spec(obj: Json) -> Json:
    spec: Json = obj.get("spec") or {}
    return spec


def _status(obj: Json) -> Json:
    status: Json = obj.get("status") or {}
    return status


def _containers(obj: Json, key: str) -> str:
    template = _spec(_spec(obj).get("template") or {})
    return ",".join(c.get(key, "") for c in template.get("containers") or ())


def _selector(obj: Json) -> str:
    return selector_text(_spec(obj).get("selector")) or "<none>"


def _restarts(obj: Json) -> str:
    statuses = _status(obj).get("containerStatuses") or ()
    return str(sum(status.get("restartCount", 0) for status in statuses))


def _labels_text(labels: Json | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def _ports(obj: Json) -> str:
    texts = []
    for port in _spec(obj).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or "<none>"


def _external_address(obj: Json) -> str:
    spec = _spec(obj)
    if spec.get("type") == "LoadBalancer":
        ingress = (_status(obj).get("loadBalancer") or {}).get("ingress") or ()
        found = ",".join(i.get("ip") or i.get("hostname", "") for i in ingress)
        return found or "<pending>"
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    return ",".join(spec.get("externalIPs") or ()) or "<none>"


def _node_status(obj: Json) -> str:
    conditions = {c["type"]: c["status"] for c in _status(obj).get("conditions") or ()}
    words = [{"True": "Ready"}.get(conditions.get("Ready", ""), "NotReady")]
    if "Ready" not in conditions:
        words = ["Unknown"]
    if _spec(obj).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = [key.removeprefix(prefix) for key in labels if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _node_address(kind: str) -> Callable[[Json], str]:
    def found(obj: Json) -> str:
        for address in _status(obj).get("addresses") or ():
            if address["type"] == kind:
                return str(address["address"])
        return "<none>"

    return found


def _node_info(key: str) -> Callable[[Json], str]:
    return lambda obj: str((_status(obj).get("nodeInfo") or {}).get(key) or "<unknown>")


def _event_object(obj: Json) -> str:
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = str(involved.get("kind", "")).lower()
    return f"{kind}/{involved.get('name', '')}"


def _event_last_seen(obj: Json) -> str:
    series = obj.get("series") or {}
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    return since(last or obj["metadata"].get("creationTimestamp"))


def _endpoint_addresses(obj: Json) -> str:
    found = []
    for subset in obj.get("subsets") or ():
        for address in subset.get("addresses") or ():
            ports = subset.get("ports") or ()
            found += [f"{address['ip']}:{p['port']}" for p in ports] or [address["ip"]]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) + more) or "<none>"


def _slice_addresses(obj: Json) -> str:
    found = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) + more) or "<unset>"


def _slice_ports(obj: Json) -> str:
    return ",".join(str(port.get("port", "*")) for port in obj.get("ports") or ()) or "<unset>"


def _bound(name: str) -> Callable[[Json], str]:
    def text(obj: Json) -> str:
        value = _spec(obj).get(name)
        return "N/A" if value is None else str(value)

    return text


def _reference(obj: Json) -> str:
    target = _spec(obj).get("scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


def _role_ref(obj: Json) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _subjects(kind: str) -> Callable[[Json], str]:
    def text(obj: Json) -> str:
        found = [s for s in obj.get("subjects") or () if s["kind"] == kind]
        prefix = kind == "ServiceAccount"
        return ", ".join(f"{s['namespace']}/{s['name']}" if prefix else s["name"] for s in found)

    return text


def _number(part: str, key: str) -> Callable[[Json], int]:
    return lambda obj: int((obj.get(part) or {}).get(key) or 0)


def _ready_of(obj: Json) -> str:
    return f"{_status(obj).get('readyReplicas', 0)}/{_spec(obj).get('replicas', 1)}"


def _count(field: str) -> Callable[[Json], int]:
    return lambda obj: len(obj.get(field) or ())


_TEMPLATE = (
    Column("Containers", lambda o: _containers(o, "name"), priority=1),
    Column("Images", lambda o: _containers(o, "image"), priority=1),
)
_SELECTOR = Column("Selector", _selector, priority=1)

COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "pods"): (
        Column("Ready", ready_count),
        Column("Status", shown_status),
        Column("Restarts", _restarts),
        AGE,
        Column("IP", lambda o: _status(o).get("podIP") or "<none>", priority=1),
        Column("Node", lambda o: _spec(o).get("nodeName") or "<none>", priority=1),
        Column(
            "Nominated Node",
            lambda o: _status(o).get("nominatedNodeName") or "<none>",
            priority=1,
        ),
        Column("Readiness Gates", lambda _: "<none>", priority=1),
    ),
    ("", "services"): (
        Column("Type", lambda o: _spec(o).get("type", "")),
        Column("Cluster-IP", lambda o: _spec(o).get("clusterIP") or "<none>"),
        Column("External-IP", _external_address),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda o: _labels_text(_spec(o).get("selector")), priority=1),
    ),
    ("", "nodes"): (
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", lambda o: _node_info("kubeletVersion")(o)),
        Column("Internal-IP", _node_address("InternalIP"), priority=1),
        Column("External-IP", _node_address("ExternalIP"), priority=1),
        Column("OS-Image", _node_info("osImage"), priority=1),
        Column("Kernel-Version", _node_info("kernelVersion"), priority=1),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), priority=1),
    ),
    ("", "namespaces"): (Column("Status", lambda o: _status(o).get("phase", "")), AGE),
    ("", "configmaps"): (
        Column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
        AGE,
    ),
    ("", "secrets"): (
        Column("Type", lambda o: o.get("type", "")),
        Column("Data", _count("data")),
        AGE,
    ),
    ("", "serviceaccounts"): (AGE,),
    ("", "endpoints"): (Column("Endpoints", _endpoint_addresses), AGE),
    ("", "events"): (
        Column("Last Seen", _event_last_seen),
        Column("Type", lambda o: o.get("type", "")),
        Column("Reason", lambda o: o.get("reason", "")),
        Column("Object", _event_object),
        Column("Message", lambda o: str(o.get("message") or o.get("note") or "").strip()),
    ),
    ("events.k8s.io", "events"): (
        Column("Last Seen", _event_last_seen),
        Column("Type", lambda o: o.get("type", "")),
        Column("Reason", lambda o: o.get("reason", "")),
        Column("Object", _event_object),
        Column("Message", lambda o: str(o.get("message") or o.get("note") or "").strip()),
    ),
    ("apps", "deployments"): (
        Column("Ready", _ready_of),
        Column("Up-to-date", _number("status", "updatedReplicas"), "integer"),
        Column("Available", _number("status", "availableReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("apps", "replicasets"): (
        Column("Desired", _number("spec", "replicas"), "integer"),
        Column("Current", _number("status", "replicas"), "integer"),
        Column("Ready", _number("status", "readyReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("apps", "statefulsets"): (Column("Ready", _ready_of), AGE, *_TEMPLATE),
    ("apps", "daemonsets"): (
        Column("Desired", _number("status", "desiredNumberScheduled"), "integer"),
        Column("Current", _number("status", "currentNumberScheduled"), "integer"),
        Column("Ready", _number("status", "numberReady"), "integer"),
        Column("Up-to-date", _number("status", "updatedNumberScheduled"), "integer"),
        Column("Available", _number("status", "numberAvailable"), "integer"),
        Column(
            "Node Selector",
            lambda o: _labels_text(_spec(_spec(o).get("template") or {}).get("nodeSelector")),
        ),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    ("coordination.k8s.io", "leases"): (
        Column("Holder", lambda o: _spec(o).get("holderIdentity") or ""),
        AGE,
    ),
    ("discovery.k8s.io", "endpointslices"): (
        Column("AddressType", lambda o: o.get("addressType", "")),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_addresses),
        AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        Column("Min Available", _bound("minAvailable")),
        Column("Max Unavailable", _bound("maxUnavailable")),
        Column("Allowed Disruptions", _number("status", "disruptionsAllowed"), "integer"),
        AGE,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        Column("Reference", _reference),
        Column("Targets", lambda _: "<unknown>"),
        Column("MinPods", lambda o: str(_spec(o).get("minReplicas", "<unset>"))),
        Column("MaxPods", _number("spec", "maxReplicas"), "integer"),
        Column("Replicas", _number("status", "currentReplicas"), "integer"),
        AGE,
    ),
    ("networking.k8s.io", "networkpolicies"): (
        Column(
            "Pod-Selector",
            lambda o: _labels_text((_spec(o).get("podSelector") or {}).get("matchLabels")),
        ),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "roles"): (
        Column("Created At", lambda o: o["metadata"].get("creationTimestamp")),
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        Column("Role", _role_ref),
        AGE,
        Column("Users", _subjects("User"), priority=1),
        Column("Groups", _subjects("Group"), priority=1),
        Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        Column("Role", _role_ref),
        AGE,
        Column("Users", _subjects("User"), priority=1),
        Column("Groups", _subjects("Group"), priority=1),
        Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
    ),
    ("batch", "jobs"): (
        Column("Status", lambda o: "Complete" if _status(o).get("succeeded") else "Running"),
        Column(
            "Completions",
            lambda o: f"{_status(o).get('succeeded', 0)}/{_spec(o).get('completions', 1)}",
        ),
        Column("Duration", lambda o: since(_status(o).get("startTime"))),
        AGE,
    ),
}
