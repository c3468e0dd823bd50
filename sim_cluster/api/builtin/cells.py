"""Single cells of the tables in which `kubectl get` shows built-in kinds."""

from collections.abc import Callable

from sim_cluster.api.builtin.ages import since
from sim_cluster.api.errors import Json
from sim_cluster.api.selectors import selector_text


def spec_of(obj: Json) -> Json:
    """The spec of an object; empty when absent."""
    spec: Json = obj.get("spec") or {}
    return spec


def status_of(obj: Json) -> Json:
    """The status of an object; empty when absent."""
    status: Json = obj.get("status") or {}
    return status


def containers(obj: Json, key: str) -> str:
    """One key of every container of a template."""
    template = spec_of(spec_of(obj).get("template") or {})
    return ",".join(c.get(key, "") for c in template.get("containers") or ())


def selector(obj: Json) -> str:
    """The selector of a workload."""
    return selector_text(spec_of(obj).get("selector")) or "<none>"


def restarts(obj: Json) -> str:
    """Restarts of all containers of a pod."""
    statuses = status_of(obj).get("containerStatuses") or ()
    return str(sum(status.get("restartCount", 0) for status in statuses))


def labels_text(labels: Json | None) -> str:
    """Labels in one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def ports(obj: Json) -> str:
    """Ports of a service."""
    texts = []
    for port in spec_of(obj).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or "<none>"


def external_address(obj: Json) -> str:
    """Where a service is reached from outside."""
    spec = spec_of(obj)
    if spec.get("type") == "LoadBalancer":
        ingress = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
        found = ",".join(i.get("ip") or i.get("hostname", "") for i in ingress)
        return found or "<pending>"
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    return ",".join(spec.get("externalIPs") or ()) or "<none>"


def node_status(obj: Json) -> str:
    """Whether a node is ready, and schedulable."""
    conditions = {c["type"]: c["status"] for c in status_of(obj).get("conditions") or ()}
    words = [{"True": "Ready"}.get(conditions.get("Ready", ""), "NotReady")]
    if "Ready" not in conditions:
        words = ["Unknown"]
    if spec_of(obj).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(obj: Json) -> str:
    """Roles of a node, by its labels."""
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = [key.removeprefix(prefix) for key in labels if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def node_address(kind: str) -> Callable[[Json], str]:
    """A cell with the address of one kind."""

    def found(obj: Json) -> str:
        for address in status_of(obj).get("addresses") or ():
            if address["type"] == kind:
                return str(address["address"])
        return "<none>"

    return found


def node_info(key: str) -> Callable[[Json], str]:
    """A cell with one fact about a node."""
    return lambda obj: str((status_of(obj).get("nodeInfo") or {}).get(key) or "<unknown>")


def event_object(obj: Json) -> str:
    """What an event is about."""
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = str(involved.get("kind", "")).lower()
    return f"{kind}/{involved.get('name', '')}"


def event_last_seen(obj: Json) -> str:
    """How long ago an event was last seen."""
    series = obj.get("series") or {}
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    return since(last or obj["metadata"].get("creationTimestamp"))


def endpoint_addresses(obj: Json) -> str:
    """The first three addresses of endpoints."""
    found = []
    for subset in obj.get("subsets") or ():
        for address in subset.get("addresses") or ():
            ports = subset.get("ports") or ()
            found += [f"{address['ip']}:{p['port']}" for p in ports] or [address["ip"]]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) + more) or "<none>"


def slice_addresses(obj: Json) -> str:
    """The first three addresses of a slice."""
    found = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) + more) or "<unset>"


def slice_ports(obj: Json) -> str:
    """Ports of a slice."""
    return ",".join(str(port.get("port", "*")) for port in obj.get("ports") or ()) or "<unset>"


def bound(name: str) -> Callable[[Json], str]:
    """A cell with one bound of a disruption budget."""

    def text(obj: Json) -> str:
        value = spec_of(obj).get(name)
        return "N/A" if value is None else str(value)

    return text


def reference(obj: Json) -> str:
    """What an autoscaler scales."""
    target = spec_of(obj).get("scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


def role_ref(obj: Json) -> str:
    """The role of a binding."""
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def subjects(kind: str) -> Callable[[Json], str]:
    """A cell with the subjects of one kind."""

    def text(obj: Json) -> str:
        found = [s for s in obj.get("subjects") or () if s["kind"] == kind]
        prefix = kind == "ServiceAccount"
        return ", ".join(f"{s['namespace']}/{s['name']}" if prefix else s["name"] for s in found)

    return text


def number(part: str, key: str) -> Callable[[Json], int]:
    """A cell with one number, 0 when absent."""
    return lambda obj: int((obj.get(part) or {}).get(key) or 0)


def ready_of(obj: Json) -> str:
    """Ready replicas of all replicas."""
    return f"{status_of(obj).get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 1)}"


def count(field: str) -> Callable[[Json], int]:
    """A cell with the number of members."""
    return lambda obj: len(obj.get(field) or ())
