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


def test_alerts_link_nowhere_unless_they_are_told_where():
    rule = chart.one(chart.render({"prometheusRule": {"enabled": True}}), "PrometheusRule")
    told = [alert["annotations"] for group in rule["spec"]["groups"] for alert in group["rules"]]

    assert all(
        "runbook_url" not in one and one["runbook"].startswith("RUNBOOKS.md#") for one in told
    )


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
