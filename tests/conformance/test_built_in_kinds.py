"""Built-in kinds: what the server fills in, refuses, and does for each in its own way."""

import pytest

from tests.conformance.client import Client
from tests.conformance.manifests import deployment, pod


@pytest.fixture
def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def test_a_deployment_is_completed(api: Client, deployments: str) -> None:
    spec = api.post(deployments, deployment()).body["spec"]

    assert spec["replicas"] == 1
    assert spec["revisionHistoryLimit"] == 10
    assert spec["progressDeadlineSeconds"] == 600
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    pod_spec = spec["template"]["spec"]
    assert pod_spec["restartPolicy"] == "Always"
    assert pod_spec["terminationGracePeriodSeconds"] == 30
    assert pod_spec["dnsPolicy"] == "ClusterFirst"
    container = pod_spec["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["ports"] == [{"containerPort": 8000, "protocol": "TCP"}]
    assert container["terminationMessagePath"] == "/dev/termination-log"


def test_a_selector_must_select_the_template(api: Client, deployments: str) -> None:
    body = deployment()
    body["spec"]["selector"]["matchLabels"] = {"app": "other"}

    reply = api.post(deployments, body)

    assert reply.code == 422
    assert reply.causes[0]["field"] == "spec.template.metadata.labels"
    assert "`selector` does not match template `labels`" in reply.message


def test_a_selector_cannot_be_changed(api: Client, deployments: str) -> None:
    api.post(deployments, deployment())

    labels = {"app": "d", "more": "x"}
    reply = api.patch(
        f"{deployments}/d",
        {
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}},
            }
        },
    )

    assert reply.code == 422
    assert "field is immutable" in reply.message


def test_a_negative_number_of_replicas_is_refused(api: Client, deployments: str) -> None:
    reply = api.post(deployments, deployment(replicas=-1))

    assert reply.code == 422
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in reply.message


def test_a_container_needs_an_image(api: Client, namespace: str) -> None:
    body = pod(containers=[{"name": "app"}])

    reply = api.post(f"/api/v1/namespaces/{namespace}/pods", body)

    assert reply.code == 422
    assert "spec.containers[0].image: Required value" in reply.message


def test_a_new_pod_is_pending(api: Client, namespace: str) -> None:
    created = api.post(f"/api/v1/namespaces/{namespace}/pods", pod()).body

    assert created["status"]["phase"] == "Pending"
    assert created["status"]["qosClass"] == "BestEffort"
    assert created["spec"]["serviceAccountName"] == "default"
    assert created["spec"]["priority"] == 0


def test_a_pod_needs_its_service_account(api: Client, namespace: str) -> None:
    body = pod(serviceAccountName="nobody")

    reply = api.post(f"/api/v1/namespaces/{namespace}/pods", body)

    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert 'serviceaccount "nobody" not found' in reply.message


def test_the_spec_of_a_pod_is_mostly_fixed(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.post(pods, pod())

    reply = api.patch(f"{pods}/p", {"spec": {"hostname": "other"}})

    assert reply.code == 422
    assert "pod updates may not change fields other than" in reply.message


def test_a_service_gets_an_address(api: Client, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}

    spec = api.post(f"/api/v1/namespaces/{namespace}/services", body).body["spec"]

    assert spec["type"] == "ClusterIP"
    assert spec["clusterIP"].startswith("10.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert spec["sessionAffinity"] == "None"


def test_a_headless_service_has_none(api: Client, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}

    spec = api.post(f"/api/v1/namespaces/{namespace}/services", body).body["spec"]

    assert spec["clusterIP"] == "None"


def test_plain_text_of_a_secret_is_encoded(api: Client, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "stringData": {"a": "b"}}

    created = api.post(f"/api/v1/namespaces/{namespace}/secrets", body).body

    assert created["data"] == {"a": "Yg=="}
    assert "stringData" not in created
    assert created["type"] == "Opaque"


def test_a_lease_is_renewed_with_a_replacement(api: Client, namespace: str) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15}
    lease = api.post(leases, {"metadata": {"name": "l"}, "spec": spec}).body
    lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"

    renewed = api.put(f"{leases}/l", lease)

    assert renewed.code == 200
    assert renewed.body["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"


def test_both_kinds_of_event_show_the_same_event(api: Client, namespace: str) -> None:
    body = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"},
        "reason": "Tested",
        "message": "told",
        "type": "Normal",
        "reportingComponent": "conformance",
    }
    api.post(f"/api/v1/namespaces/{namespace}/events", body)

    other = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/e").body

    assert other["note"] == "told"
    assert other["regarding"]["name"] == "p"
    assert other["reportingController"] == "conformance"
