"""One test for each switch of values.yaml: what it adds, takes away or changes, and no more."""

import json

import pytest
import yaml

from tests.chart import rendering as chart

DEFAULT = frozenset(
    {
        ("ClusterRole", "fleetline"),
        ("ClusterRole", "fleetline-edit"),
        ("ClusterRole", "fleetline-view"),
        ("ClusterRoleBinding", "fleetline"),
        ("CustomResourceDefinition", "acceleratorprofiles.fleetline.dev"),
        ("CustomResourceDefinition", "servingfleets.fleetline.dev"),
        ("Deployment", "fleetline"),
        ("Pod", "fleetline-test"),
        ("Service", "fleetline"),
        ("ServiceAccount", "fleetline"),
    }
)


def names(objects):
    return {(document["kind"], document["metadata"]["name"]) for document in objects}


def pod(objects):
    return chart.one(objects, "Deployment")["spec"]["template"]["spec"]


def test_the_defaults_need_nothing_that_a_cluster_may_lack():
    assert names(chart.render()) == DEFAULT


SWITCHES = [
    pytest.param({"service": {"enabled": True}}, set(), id="service on"),
    pytest.param({"serviceMonitor": {"enabled": True}}, {"ServiceMonitor"}, id="serviceMonitor"),
    pytest.param({"podMonitor": {"enabled": True}}, {"PodMonitor"}, id="podMonitor"),
    pytest.param({"prometheusRule": {"enabled": True}}, {"PrometheusRule"}, id="prometheusRule"),
    pytest.param({"dashboard": {"enabled": True}}, {"ConfigMap"}, id="dashboard"),
    pytest.param({"networkPolicy": {"enabled": True}}, {"NetworkPolicy"}, id="networkPolicy"),
    pytest.param(
        {"podDisruptionBudget": {"enabled": True}}, {"PodDisruptionBudget"}, id="disruption budget"
    ),
]


@pytest.mark.parametrize(("values", "added"), SWITCHES)
def test_a_switch_turned_on_adds_its_object_alone(values, added):
    objects = names(chart.render(values))

    assert {kind for kind, _ in objects - DEFAULT} == added
    assert objects >= DEFAULT


OFF = [
    pytest.param({"crds": {"enabled": False}}, {"CustomResourceDefinition"}, id="crds"),
    pytest.param({"service": {"enabled": False}}, {"Service"}, id="service"),
    pytest.param({"serviceAccount": {"create": False}}, {"ServiceAccount"}, id="serviceAccount"),
    pytest.param({"rbac": {"aggregate": False}}, {"ClusterRole"}, id="aggregate"),
    pytest.param(
        {"rbac": {"create": False}},
        {"ClusterRole", "ClusterRoleBinding"},
        id="rbac",
    ),
]


@pytest.mark.parametrize(("values", "gone"), OFF)
def test_a_switch_turned_off_takes_its_objects_alone(values, gone):
    objects = names(chart.render(values))

    assert {kind for kind, _ in DEFAULT - objects} == gone
    assert objects <= DEFAULT


def test_kept_definitions_survive_an_uninstall():
    definitions = chart.of_kind(chart.render(), "CustomResourceDefinition")

    assert [d["metadata"]["annotations"]["helm.sh/resource-policy"] for d in definitions] == [
        "keep",
        "keep",
    ]


def test_definitions_that_are_not_kept_go_with_the_release():
    definitions = chart.of_kind(chart.render({"crds": {"keep": False}}), "CustomResourceDefinition")

    assert [d["metadata"].get("annotations") for d in definitions] == [None, None]


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


def test_annotations_of_the_service_account_are_those_given():
    objects = chart.render({"serviceAccount": {"annotations": {"example.com/role": "r"}}})

    assert chart.one(objects, "ServiceAccount")["metadata"]["annotations"] == {
        "example.com/role": "r"
    }


@pytest.mark.parametrize(
    ("kind", "switch", "endpoints"),
    [
        ("ServiceMonitor", "serviceMonitor", "endpoints"),
        ("PodMonitor", "podMonitor", "podMetricsEndpoints"),
    ],
)
def test_a_monitor_selects_the_operator_and_keeps_the_namespace_of_fleets(kind, switch, endpoints):
    values = {switch: {"enabled": True, "interval": "30s", "labels": {"release": "prom"}}}
    objects = chart.render(values)
    monitor = chart.one(objects, kind)
    selected = monitor["spec"]["selector"]["matchLabels"]

    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert monitor["spec"][endpoints] == [
        {"port": "metrics", "interval": "30s", "honorLabels": True}
    ]
    assert selected.items() <= chart.one(objects, "Service")["metadata"]["labels"].items()
    assert selected.items() <= (
        chart.one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    )


def test_the_dashboard_is_found_by_its_label_and_is_json():
    values = {"dashboard": {"enabled": True, "labels": {"my_dashboards": "yes"}}}
    config = chart.one(chart.render(values), "ConfigMap", "fleetline-dashboard")

    assert config["metadata"]["labels"]["my_dashboards"] == "yes"
    assert json.loads(config["data"]["fleetline.json"])["title"] == "Fleetline"


def test_alerts_point_at_the_runbooks_that_were_asked_for():
    values = {"prometheusRule": {"enabled": True, "runbookUrl": "https://wiki.example/fl"}}
    rule = chart.one(chart.render(values), "PrometheusRule")
    urls = [
        alert["annotations"]["runbook_url"]
        for group in rule["spec"]["groups"]
        for alert in group["rules"]
    ]

    assert urls
    assert all(url.startswith("https://wiki.example/fl#") for url in urls)


def test_the_network_policy_lets_out_to_dns_api_server_and_prometheus_only():
    values = {"networkPolicy": {"enabled": True, "egressPorts": [6443, 9090]}}
    spec = chart.one(chart.render(values), "NetworkPolicy")["spec"]

    assert spec["policyTypes"] == ["Ingress", "Egress"]
    anywhere = [rule for rule in spec["egress"] if "to" not in rule]
    (inside,) = (rule for rule in spec["egress"] if "to" in rule)

    assert [p["port"] for rule in anywhere for p in rule["ports"]] == [53, 53, 6443, 9090]
    assert [p["port"] for p in inside["ports"]] == ["metrics"]
    assert spec["podSelector"]["matchExpressions"][0]["values"] == ["fleetline", "fleetline-test"]
    assert [p["port"] for rule in spec["ingress"] for p in rule["ports"]] == ["metrics"]


def test_a_release_of_another_name_is_told_apart():
    objects = chart.render(name="prod")

    assert chart.one(objects, "Deployment", "prod-fleetline")
    assert {d["metadata"].get("namespace", "ops") for d in objects} == {"ops"}


def test_long_release_names_stay_within_limits():
    objects = chart.render(name="a" * 53)

    assert max(len(d["metadata"]["name"]) for d in objects) <= 63


def test_the_notes_say_the_next_three_commands():
    template = (chart.CHART / "templates" / "NOTES.txt").read_text("utf-8")
    commands = [line.strip() for line in template.splitlines() if line.startswith("  ")]

    assert [command.split()[0] for command in commands] == ["helm", "kubectl", "kubectl"]


def test_every_switch_has_been_tried():
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text("utf-8"))
    switches = {path for path, value in leaves(values) if isinstance(value, bool)}
    tried = {
        path
        for given in (chart.EVERYTHING, chart.LEAST, {"podMonitor": {"enabled": True}})
        for path, _ in leaves(given)
    }

    assert switches <= tried | {"crds.keep", "rbac.aggregate"}


def leaves(tree, path=""):
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
