"""The life of a release: installed, upgraded, rolled back and uninstalled by the real helm."""

import json

import pytest
import yaml

from sim_cluster import tools
from tests.chart import rendering as chart
from tests.chart.test_permissions import CLUSTER, NAMESPACED

MINIMAL = chart.ROOT / "crds" / "examples" / "minimal.yaml"
DEFINITIONS = ("servingfleets.fleetline.dev", "acceleratorprofiles.fleetline.dev")


def arguments(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def apply_fleet(release):
    names = [f"customresourcedefinition/{name}" for name in DEFINITIONS]
    release.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    release.cluster.kubectl("apply", "--namespace", release.namespace, "-f", str(MINIMAL))


def fleet_exists(release):
    return release.cluster.exists("servingfleet", "chat", "--namespace", release.namespace)


def test_installed_it_serves_fleets_and_says_what_to_do_next(release):
    notes = release.install()
    apply_fleet(release)

    assert "kubectl get servingfleets --all-namespaces --output wide" in notes
    assert release.history() == [(1, "deployed")]
    assert fleet_exists(release)
    assert release.deployment()["spec"]["replicas"] == 1


def test_everything_on_is_accepted_by_the_api_server(release):
    needs_foreign_definitions = {
        "serviceMonitor": {"enabled": False},
        "prometheusRule": {"enabled": False},
    }

    release.install(chart.merged(chart.EVERYTHING, needs_foreign_definitions))

    assert release.cluster.exists("networkpolicy", "fleetline", "--namespace", release.namespace)
    assert release.cluster.exists(
        "poddisruptionbudget", "fleetline", "--namespace", release.namespace
    )


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param(chart.EVERYTHING, id="everything on"),
        pytest.param({"watchNamespaces": ["default"]}, id="a namespace"),
    ],
)
def test_the_api_server_knows_every_field_of_every_object(release, values):
    objects = chart.render(values, namespace=release.namespace)
    known = [one for one in objects if "monitoring.coreos.com" not in one["apiVersion"]]

    # the test pod is admitted only when its account is there
    release.cluster.kubectl("create", "serviceaccount", "fleetline", "-n", release.namespace)

    code, output = strictly(release, known)

    assert code == 0, output


def test_the_api_server_would_name_a_field_that_it_does_not_know(release):
    wrong = chart.one(chart.render(namespace=release.namespace), "Deployment")
    wrong["spec"]["template"]["spec"]["automountServiceAccountTokn"] = True

    code, output = strictly(release, [wrong])

    assert code == 1
    assert 'unknown field "spec.template.spec.automountServiceAccountTokn"' in output


def strictly(release, objects):
    return release.cluster.run(
        tools.kubectl(),
        *("apply", "--dry-run=server", "--validate=strict", "-f", "-"),
        stdin=yaml.safe_dump_all(objects),
    )


def test_an_upgrade_changes_what_was_asked_for_and_keeps_fleets(release):
    release.install()
    apply_fleet(release)

    release.upgrade({"logLevel": "debug", "watchNamespaces": [release.namespace]})

    assert release.history()[-1] == (2, "deployed")
    assert "--log-level=debug" in arguments(release.deployment())
    assert release.cluster.exists("role", "fleetline", "--namespace", release.namespace)
    assert fleet_exists(release)


def test_a_rollback_brings_the_settings_back_and_keeps_fleets(release):
    release.install()
    apply_fleet(release)
    before = arguments(release.deployment())
    release.upgrade({"logLevel": "debug", "watchNamespaces": [release.namespace]})

    release.rollback(1)

    assert arguments(release.deployment()) == before
    assert not release.cluster.exists("role", "fleetline", "--namespace", release.namespace)
    assert fleet_exists(release)


def test_fleets_survive_an_uninstall_and_a_new_release_takes_them_over(release):
    release.install()
    apply_fleet(release)

    release.uninstall()

    assert not release.cluster.exists("deployment", "fleetline", "--namespace", release.namespace)
    assert not release.cluster.exists("clusterrole", "fleetline")
    assert fleet_exists(release)

    release.install()

    assert fleet_exists(release)


def test_without_keep_an_uninstall_takes_everything(release):
    release.install({"crds": {"keep": False}})

    release.uninstall()

    release.cluster.kubectl(
        "wait", "--for=delete", "--timeout=30s", *(f"crd/{name}" for name in DEFINITIONS)
    )
    assert not release.cluster.exists("crd", DEFINITIONS[0])


def test_a_deleted_fleet_waits_for_nobody_when_the_operator_is_gone(release):
    release.install()
    apply_fleet(release)
    release.uninstall()

    release.cluster.kubectl(
        "delete", "servingfleet", "chat", "--namespace", release.namespace, "--timeout=10s"
    )

    assert not fleet_exists(release)


FORBIDDEN = [
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
    ("get", "", "configmaps", ""),
    ("create", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("create", "", "serviceaccounts", "token"),
    ("patch", "", "nodes", ""),
    ("patch", "apps", "deployments", ""),
    ("update", "apps", "deployments", "scale"),
    ("delete", "apps", "deployments", ""),
    ("patch", "fleetline.dev", "servingfleets", ""),
    ("delete", "fleetline.dev", "servingfleets", ""),
    ("update", "fleetline.dev", "servingfleets", "status"),
    ("patch", "fleetline.dev", "acceleratorprofiles", ""),
    ("get", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
    ("list", "coordination.k8s.io", "leases", ""),
]


def attributes(granted):
    """(verb, group, resource, subresource) of a table of grants."""
    return [
        (verb, group, *([*resource.split("/"), ""])[:2])
        for (group, resource), verbs in granted.items()
        for verb in verbs
    ]


def may(release, asked, *, namespace="", name=""):
    """Ask the API server, with the operator's own token, what it may do: one answer each."""
    token = release.cluster.kubectl(
        "create", "token", release.name, "--namespace", release.namespace
    ).strip()
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "verb": verb,
                    "group": group,
                    "resource": resource,
                    "subresource": subresource,
                    "namespace": namespace,
                    "name": name,
                }
            },
        }
        for verb, group, resource, subresource in asked
    ]
    text = "\n---\n".join(json.dumps(review) for review in reviews)
    output = release.cluster.kubectl(
        "create",
        "--token",
        token,
        "--validate=false",
        "-f",
        "-",
        "--output",
        "jsonpath={.status.allowed} ",
        stdin=text,
    )
    return dict(zip(asked, [word == "true" for word in output.split()], strict=True))


def test_its_service_account_may_do_what_it_must(release):
    release.install()

    answers = may(release, attributes({**NAMESPACED, **CLUSTER}), namespace="any")

    assert [asked for asked, allowed in answers.items() if not allowed] == []


def test_its_service_account_may_do_nothing_else(release):
    release.install()

    answers = may(release, FORBIDDEN, namespace=release.namespace)

    assert [asked for asked, allowed in answers.items() if allowed] == []


@pytest.mark.parametrize(("name", "allowed"), [("fleetline", True), ("another", False)])
def test_its_service_account_may_renew_its_own_lease_alone(release, name, allowed):
    release.install({"replicaCount": 2})
    renewals = [(verb, "coordination.k8s.io", "leases", "") for verb in ("get", "update", "patch")]

    answers = may(release, renewals, namespace=release.namespace, name=name)

    assert set(answers.values()) == {allowed}


def test_in_listed_namespaces_its_service_account_stays_inside_them(release):
    release.install({"watchNamespaces": [release.namespace]})
    asked = attributes(NAMESPACED)

    inside = may(release, asked, namespace=release.namespace)
    outside = may(release, asked, namespace="default")

    assert all(inside.values())
    assert not any(outside.values())
