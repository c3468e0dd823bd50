"""The operator's own token, asked of the API server: what it may do, and nothing else."""

import json

import pytest

from tests.chart.test_permissions import CLUSTER, NAMESPACED

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
