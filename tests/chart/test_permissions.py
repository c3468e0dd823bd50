"""The operator is granted exactly what it needs; the pod runs with the least that a pod can."""

import pytest

from tests.chart import rendering as chart

READ = ("get", "list", "watch")

NAMESPACED = {
    ("fleetline.dev", "servingfleets"): READ,
    ("fleetline.dev", "servingfleets/status"): ("get", "patch"),
    ("apps", "deployments/scale"): ("get", "patch"),
    ("apps", "statefulsets/scale"): ("get", "patch"),
    ("apps", "deployments"): READ,
    ("apps", "statefulsets"): READ,
    ("apps", "replicasets"): READ,
    ("", "pods"): READ,
    ("autoscaling", "horizontalpodautoscalers"): READ,
    ("keda.sh", "scaledobjects"): READ,
    ("", "events"): ("create", "patch"),
    ("events.k8s.io", "events"): ("create", "patch"),
}
CLUSTER = {
    ("fleetline.dev", "acceleratorprofiles"): READ,
    ("", "nodes"): READ,
}
LEASE = [
    (("coordination.k8s.io", "leases"), None, ("create",)),
    (("coordination.k8s.io", "leases"), ("fleetline",), ("get", "update", "patch")),
]

VALUES = [
    pytest.param({}, id="defaults"),
    pytest.param(chart.EVERYTHING, id="everything on"),
    pytest.param({"watchNamespaces": ["chat", "code"]}, id="two namespaces"),
    pytest.param({**chart.LEAST, "rbac": {"create": True}}, id="as little as possible"),
]


def granted(role):
    """Verbs by (group, resource) of a role without resource names."""
    return {
        (group, resource): tuple(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_cluster_wide_the_operator_has_exactly_these_verbs():
    role = chart.one(chart.render(), "ClusterRole")

    assert granted(role) == {**NAMESPACED, **CLUSTER}


def test_in_listed_namespaces_it_has_them_there_and_only_reads_the_cluster():
    objects = chart.render({"watchNamespaces": ["chat", "code"]})
    roles = [r for r in chart.of_kind(objects, "Role") if r["metadata"]["name"] == "fleetline"]

    assert granted(chart.one(objects, "ClusterRole")) == CLUSTER
    assert {r["metadata"]["namespace"]: granted(r) for r in roles} == {
        "chat": NAMESPACED,
        "code": NAMESPACED,
    }


def test_one_replica_alone_has_no_lease():
    assert chart.of_kind(chart.render(), "Role") == []


def test_the_lease_of_two_replicas_is_their_own():
    role = chart.one(chart.render({"replicaCount": 2}), "Role", "fleetline-lease")
    rules = [
        (
            (rule["apiGroups"][0], rule["resources"][0]),
            tuple(rule["resourceNames"]) if "resourceNames" in rule else None,
            tuple(rule["verbs"]),
        )
        for rule in role["rules"]
    ]

    assert rules == LEASE


@pytest.mark.parametrize(
    ("values", "resource"),
    [
        pytest.param({"podReading": {"enabled": False}}, ("", "pods"), id="pods"),
        pytest.param({"gpuDiscovery": {"enabled": False}}, ("", "nodes"), id="nodes"),
    ],
)
def test_a_permission_that_is_not_wanted_is_not_granted(values, resource):
    role = chart.one(chart.render(values), "ClusterRole")
    expected = {**NAMESPACED, **CLUSTER}
    expected.pop(resource)

    assert granted(role) == expected


def test_without_conflict_detection_no_other_autoscaler_is_read():
    role = chart.one(chart.render({"conflictDetection": {"enabled": False}}), "ClusterRole")

    assert {group for group, _ in granted(role)}.isdisjoint({"autoscaling", "keda.sh"})


def test_of_further_kinds_only_the_scale_is_touched():
    role = chart.one(chart.render(chart.EVERYTHING), "ClusterRole")
    further = {key: verbs for key, verbs in granted(role).items() if key[0].startswith("leader")}

    assert further == {
        ("leaderworkerset.x-k8s.io", "leaderworkersets/scale"): ("get", "patch"),
    }


@pytest.mark.parametrize("values", VALUES)
def test_nothing_forbidden_is_granted_to_anybody(values):
    objects = chart.render(values)
    roles = chart.of_kind(objects, "ClusterRole") + chart.of_kind(objects, "Role")
    rules = [
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]

    assert not [rule for rule in rules if "*" in "".join(rule)]
    assert not [r for r in rules if r[1] in {"secrets", "configmaps", "serviceaccounts/token"}]
    assert not [r for r in rules if r[1] == "customresourcedefinitions" or "webhook" in r[1]]
    assert not [r for r in rules if r[1] == "pods" and r[2] not in READ]
    assert not [r for r in rules if r[2] in {"impersonate", "escalate", "bind"}]
    assert not [r for r in rules if r[0] == "apps" and "/" not in r[1] and r[2] not in READ]


def test_users_get_fleets_through_the_built_in_roles():
    objects = chart.render()
    view, edit = (chart.one(objects, "ClusterRole", f"fleetline-{who}") for who in ("view", "edit"))

    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]
    assert granted(view)[("fleetline.dev", "servingfleets")] == READ
    assert granted(edit) == {
        ("fleetline.dev", "servingfleets"): (
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
        )
    }


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_every_pod_meets_the_restricted_standard(values, kind):
    name = "fleetline" if kind == "Deployment" else "fleetline-test"
    document = chart.one(chart.render(values), kind, name)
    spec = document["spec"]["template"]["spec"] if kind == "Deployment" else document["spec"]
    pod, (container,) = spec["securityContext"], spec["containers"]

    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] >= 10_000
    assert pod["runAsGroup"] >= 10_000
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    kinds = {kind for volume in spec["volumes"] for kind in volume.keys() - {"name"}}
    assert kinds <= {"emptyDir", "secret", "configMap"}
    assert container["resources"]["limits"].keys() >= {"memory"} or values.get("resources")


def test_the_token_is_mounted_where_it_is_needed_alone():
    objects = chart.render()

    assert chart.one(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    pod = chart.one(objects, "Deployment")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is True


def test_probes_ask_the_health_port_and_ride_out_an_api_server_outage():
    container = chart.container(chart.render())
    ports = {port["name"] for port in container["ports"]}
    probes = [container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")]

    assert {probe["httpGet"]["port"] for probe in probes} == {"health"}
    assert ports == {"metrics", "health"}
    assert (
        container["livenessProbe"]["periodSeconds"] * container["livenessProbe"]["failureThreshold"]
        >= 120
    )
