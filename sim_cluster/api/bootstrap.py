"""What exists from the start: namespaces, the service `kubernetes`, and the default roles."""

from sim_cluster.api.authentication import User
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import Json, unknown_path
from sim_cluster.api.rbac import GROUP
from sim_cluster.api.writing import Writer

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_CONTENT = (
    ("", ("configmaps", "endpoints", "persistentvolumeclaims", "pods", "replicationcontrollers",
          "replicationcontrollers/scale", "serviceaccounts", "services")),
    ("apps", ("daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
              "statefulsets", "statefulsets/scale")),
    ("autoscaling", ("horizontalpodautoscalers",)),
    ("batch", ("cronjobs", "jobs")),
    ("networking.k8s.io", ("ingresses", "networkpolicies")),
    ("policy", ("poddisruptionbudgets",)),
    ("coordination.k8s.io", ("leases",)),
)  # fmt: skip


def _rule(verbs: list[str], group: str, *resources: str) -> Json:
    return {"verbs": verbs, "apiGroups": [group], "resources": list(resources)}


def _roles() -> list[tuple[str, list[Json], Json | None]]:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ]
    view = [_rule(_READ, group, *resources) for group, resources in _CONTENT]
    view.append(
        _rule(
            _READ,
            "",
            "events",
            "namespaces",
            "pods/log",
            "pods/status",
            "resourcequotas",
            "limitranges",
        )
    )
    edit = [_rule(_WRITE, group, *resources) for group, resources in _CONTENT]
    edit += [
        _rule([*_READ, *_WRITE], "", "secrets"),
        _rule(["create"], "", "pods/eviction", "serviceaccounts/token"),
        _rule(["impersonate"], "", "serviceaccounts"),
    ]
    admin = [
        _rule([*_READ, *_WRITE], GROUP, "rolebindings", "roles"),
        _rule(["create"], "authorization.k8s.io", "localsubjectaccessreviews"),
    ]
    reviews = [
        _rule(
            ["create"],
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
        ),
        _rule(["create"], "authentication.k8s.io", "selfsubjectreviews"),
    ]
    return [
        ("cluster-admin", [everything, anywhere], None),
        ("system:discovery", [{"verbs": ["get"], "nonResourceURLs": discovery}], None),
        (
            "system:public-info-viewer",
            [
                {
                    "verbs": ["get"],
                    "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
                }
            ],
            None,
        ),
        ("system:basic-user", reviews, None),
        ("system:aggregate-to-view", view, {_AGGREGATE + "view": "true"}),
        ("system:aggregate-to-edit", edit, {_AGGREGATE + "edit": "true"}),
        ("system:aggregate-to-admin", admin, {_AGGREGATE + "admin": "true"}),
    ]


_AGGREGATED = (
    ("view", ("view",), {_AGGREGATE + "edit": "true"}),
    ("edit", ("edit",), {_AGGREGATE + "admin": "true"}),
    ("admin", ("admin",), None),
)
"""The roles that collect the rules of others: name, labels they select, own labels."""

_BINDINGS = (
    ("cluster-admin", "cluster-admin", ("system:masters",)),
    ("system:discovery", "system:discovery", ("system:authenticated",)),
    ("system:basic-user", "system:basic-user", ("system:authenticated",)),
    (
        "system:public-info-viewer",
        "system:public-info-viewer",
        ("system:authenticated", "system:unauthenticated"),
    ),
)
_LABEL = {"kubernetes.io/bootstrapping": "rbac-defaults"}


class Bootstrap:
    """Creates objects in the server's own name."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def create(self, group: str, version: str, plural: str, obj: Json) -> None:
        """Create one object."""
        resource = self._writer.state.registry.find(group, version, plural)
        if resource is None:
            raise unknown_path()
        namespace = obj["metadata"].get("namespace", "")
        user = User(name="system:apiserver")
        call = Call(
            user=user, resource=resource, namespace=namespace, user_agent="kube-apiserver/v1"
        )
        self._writer.create(call, obj, [])

    def all(self) -> None:
        """Create everything that a new cluster has."""
        for name in NAMESPACES:
            self.create("", "v1", "namespaces", {"metadata": {"name": name}})
        self._service()
        for name, rules, labels in _roles():
            self._role(name, {"rules": rules}, labels)
        for name, selected, labels in _AGGREGATED:
            selectors = [{"matchLabels": {_AGGREGATE + each: "true"}} for each in selected]
            body = {"aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}
            self._role(name, body, labels)
        for name, role, groups in _BINDINGS:
            subjects = [{"kind": "Group", "name": group, "apiGroup": GROUP} for group in groups]
            ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
            metadata = {"name": name, "labels": dict(_LABEL)}
            binding = {"metadata": metadata, "roleRef": ref, "subjects": subjects}
            self.create(GROUP, "v1", "clusterrolebindings", binding)

    def _role(self, name: str, body: Json, labels: Json | None) -> None:
        metadata = {"name": name, "labels": {**_LABEL, **(labels or {})}}
        self.create(GROUP, "v1", "clusterroles", {"metadata": metadata, **body})

    def _service(self) -> None:
        port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
        metadata = {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        }
        spec = {"type": "ClusterIP", "clusterIP": "10.96.0.1", "ports": [port]}
        self.create("", "v1", "services", {"metadata": metadata, "spec": spec})
