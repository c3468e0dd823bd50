"""Settings of the operator's pod: scope, image, replicas, place, resources, credentials."""

import pytest

from tests.chart import rendering as chart


def pod(objects):
    return chart.one(objects, "Deployment")["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("watch_namespaces", "scope"),
    [
        pytest.param([], ["--all-namespaces"], id="cluster-wide"),
        pytest.param(
            ["chat", "code"], ["--namespace=chat", "--namespace=code"], id="two namespaces"
        ),
    ],
)
def test_the_operator_watches_what_was_asked_for(watch_namespaces, scope):
    objects = chart.render({"watchNamespaces": watch_namespaces})

    assert chart.container(objects)["args"][: 1 + len(scope)] == ["run", *scope]


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        pytest.param(
            {"prometheus": {"url": "https://thanos.example:10902/q"}},
            "--prometheus-url=https://thanos.example:10902/q",
            id="prometheus.url",
        ),
        pytest.param(
            {"prometheus": {"podLabel": "kubernetes_pod_name"}},
            "--pod-label=kubernetes_pod_name",
            id="prometheus.podLabel",
        ),
        pytest.param(
            {"prometheus": {"namespaceLabel": "kubernetes_namespace"}},
            "--namespace-label=kubernetes_namespace",
            id="prometheus.namespaceLabel",
        ),
        pytest.param({"syncPeriodSeconds": 30}, "--sync-period=30", id="syncPeriodSeconds"),
        pytest.param({"logLevel": "debug"}, "--log-level=debug", id="logLevel"),
    ],
)
def test_a_setting_reaches_the_operator(values, argument):
    assert argument in chart.container(chart.render(values))["args"]


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        pytest.param({}, "fleetline/fleetline:0.1.0", id="the chart's version"),
        pytest.param({"tag": "0.2.0"}, "fleetline/fleetline:0.2.0", id="a tag"),
        pytest.param({"repository": "mirror/fl"}, "mirror/fl:0.1.0", id="a mirror"),
        pytest.param(
            {"tag": "0.2.0", "digest": f"sha256:{'a' * 64}"},
            f"fleetline/fleetline@sha256:{'a' * 64}",
            id="a digest wins",
        ),
    ],
)
def test_the_image_is_the_one_asked_for(image, reference):
    objects = chart.render({"image": image})

    assert chart.container(objects)["image"] == reference
    assert (
        chart.one(objects, "Pod", "fleetline-test")["spec"]["containers"][0]["image"] == reference
    )


def test_the_image_is_pulled_as_asked_for():
    objects = chart.render({"image": {"pullPolicy": "Always"}, "imagePullSecrets": [{"name": "p"}]})

    assert chart.container(objects)["imagePullPolicy"] == "Always"
    assert pod(objects)["imagePullSecrets"] == [{"name": "p"}]


def test_credentials_for_prometheus_are_mounted_and_never_in_the_arguments():
    values = {
        "prometheus": {"tokenSecret": {"name": "t", "key": "k"}, "caConfigMap": {"name": "c"}}
    }
    objects = chart.render(values)
    mounts = {m["name"]: m["mountPath"] for m in chart.container(objects)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}

    assert "--prometheus-token-file=/etc/fleetline/token/k" in chart.container(objects)["args"]
    assert "--prometheus-ca-file=/etc/fleetline/ca/ca.crt" in chart.container(objects)["args"]
    assert mounts.items() >= {"token": "/etc/fleetline/token", "ca": "/etc/fleetline/ca"}.items()
    assert volumes["token"]["secret"]["secretName"] == "t"
    assert volumes["ca"]["configMap"]["name"] == "c"


def test_one_replica_is_recreated_so_that_two_never_act():
    spec = chart.one(chart.render(), "Deployment")["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_two_replicas_stand_on_different_nodes_and_are_replaced_one_by_one():
    objects = chart.render({"replicaCount": 2})
    spec = chart.one(objects, "Deployment")["spec"]

    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxSurge"]) == (2, 0)
    assert chart.container(objects)["args"][-2:] == ["--leader-elect", "--lease-name=fleetline"]
    assert pod(objects)["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_the_pod_goes_where_it_is_sent():
    objects = chart.render(
        {
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"key": "system", "operator": "Exists"}],
            "priorityClassName": "system-cluster-critical",
        }
    )

    assert pod(objects)["nodeSelector"] == {"pool": "system"}
    assert pod(objects)["tolerations"] == [{"key": "system", "operator": "Exists"}]
    assert pod(objects)["priorityClassName"] == "system-cluster-critical"


def test_resources_are_those_given():
    objects = chart.render({"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}})

    assert chart.container(objects)["resources"]["requests"]["cpu"] == "1"
    assert chart.container(objects)["resources"]["limits"] == {"memory": "1Gi"}


def test_no_cpu_limit_throttles_the_lease_away():
    assert "cpu" not in chart.container(chart.render())["resources"]["limits"]


def test_a_service_account_of_ones_own_is_used_and_bound():
    objects = chart.render({"serviceAccount": {"create": False, "name": "mine"}})
    bindings = chart.of_kind(objects, "ClusterRoleBinding")

    assert pod(objects)["serviceAccountName"] == "mine"
    assert {b["subjects"][0]["name"] for b in bindings} == {"mine"}
