"""Scale, binding, eviction and tokens."""

import pytest

from tests.conformance.client import APPLY, JSON_PATCH, Client
from tests.conformance.manifests import deployment, pod, widget


@pytest.fixture
def deployment_path(api: Client, namespace: str) -> str:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(deployments, deployment(replicas=2))
    return f"{deployments}/d"


def test_the_scale_of_a_deployment_is_read(api: Client, deployment_path: str) -> None:
    scale = api.get(f"{deployment_path}/scale").body

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"]["selector"] == "app=d"
    assert scale["metadata"]["uid"] == api.get(deployment_path).body["metadata"]["uid"]


def test_the_scale_is_replaced(api: Client, deployment_path: str) -> None:
    scale = api.get(f"{deployment_path}/scale").body
    scale["spec"]["replicas"] = 5
    del scale["metadata"]["resourceVersion"]

    reply = api.put(f"{deployment_path}/scale", scale)

    assert reply.body["spec"]["replicas"] == 5
    assert api.get(deployment_path).body["spec"]["replicas"] == 5


def test_the_scale_is_patched(api: Client, deployment_path: str) -> None:
    reply = api.patch(f"{deployment_path}/scale", {"spec": {"replicas": 4}})

    assert (reply.code, reply.body["kind"]) == (200, "Scale")
    assert api.get(deployment_path).body["metadata"]["generation"] == 2


def test_the_scale_is_patched_with_operations(api: Client, deployment_path: str) -> None:
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 6}]

    reply = api.patch(f"{deployment_path}/scale", operations, JSON_PATCH)

    assert reply.body["spec"]["replicas"] == 6


def test_a_stale_scale_is_refused(api: Client, deployment_path: str) -> None:
    version = api.get(f"{deployment_path}/scale").body["metadata"]["resourceVersion"]
    api.patch(f"{deployment_path}/scale", {"spec": {"replicas": 3}})

    body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": 4}}
    reply = api.patch(f"{deployment_path}/scale", body)

    assert (reply.code, reply.reason) == (409, "Conflict")


def test_a_negative_scale_is_refused(api: Client, deployment_path: str) -> None:
    reply = api.patch(f"{deployment_path}/scale", {"spec": {"replicas": -1}})

    assert reply.code == 422
    assert "must be greater than or equal to 0" in reply.message


def test_scaling_to_the_same_number_writes_nothing(api: Client, deployment_path: str) -> None:
    before = api.get(f"{deployment_path}/scale").body["metadata"]["resourceVersion"]

    after = api.patch(f"{deployment_path}/scale", {"spec": {"replicas": 2}}).body

    generation = api.get(deployment_path).body["metadata"]["generation"]
    assert int(after["metadata"]["resourceVersion"]) >= int(before)
    assert generation == 1


def test_a_scale_of_zero_leaves_the_field_out(api: Client, deployment_path: str) -> None:
    scale = api.patch(f"{deployment_path}/scale", {"spec": {"replicas": 0}}).body

    assert not scale.get("spec", {}).get("replicas")


def test_a_custom_object_has_a_scale(api: Client, widgets: str) -> None:
    api.post(widgets, widget(replicas=3))
    api.patch(f"{widgets}/w/status", {"status": {"replicas": 2, "selector": "app=w"}})

    scale = api.get(f"{widgets}/w/scale").body

    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=w"}


def test_a_custom_object_is_scaled(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    api.patch(f"{widgets}/w/scale", {"spec": {"replicas": 4}})

    current = api.get(f"{widgets}/w").body
    assert current["spec"]["replicas"] == 4
    assert current["metadata"]["generation"] == 2


def test_scaling_a_custom_object_obeys_its_rules(api: Client, widgets: str) -> None:
    api.post(widgets, widget(max=3))

    reply = api.patch(f"{widgets}/w/scale", {"spec": {"replicas": 9}})

    assert reply.code == 422
    assert "replicas must be <= max" in reply.message


def test_the_scale_of_nothing_is_not_found(api: Client, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/none/scale"

    assert api.get(path).code == 404


def test_a_config_map_has_no_scale(api: Client, namespace: str) -> None:
    assert api.get(f"/api/v1/namespaces/{namespace}/configmaps/c/scale").code == 404


def test_a_pod_is_bound_to_a_node(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.post(pods, pod())
    binding = {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "somewhere"},
    }  # fmt: skip

    first = api.post(f"{pods}/p/binding", binding)
    second = api.post(f"{pods}/p/binding", binding)
    bound = api.get(f"{pods}/p").body
    api.delete(f"{pods}/p", {"gracePeriodSeconds": 0})

    assert (first.code, first.body["status"]) == (201, "Success")
    assert second.code == 409
    assert bound["spec"]["nodeName"] == "somewhere"
    conditions = {c["type"]: c["status"] for c in bound["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


def test_a_pod_is_evicted(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.post(pods, pod())
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}

    reply = api.post(f"{pods}/p/eviction", eviction)

    assert reply.code == 201
    assert api.get(f"{pods}/p").code == 404


def test_a_service_account_gets_a_token_that_works(api: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }

    reply = api.post(path, body)

    assert reply.code == 201
    status = reply.body["status"]
    assert status["token"].count(".") == 2
    assert status["expirationTimestamp"].endswith("Z")
    client = api.as_user(status["token"])
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    me = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).body
    client.close()
    assert me["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_token_lives_at_least_ten_minutes(api: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"

    reply = api.post(path, {"spec": {"expirationSeconds": 60}})

    assert reply.code == 422
    assert "may not specify a duration less than 10 minutes" in reply.message


def test_status_of_a_built_in_object_is_written_apart(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.post(pods, pod())

    body = {"spec": {"nodeName": "x"}, "status": {"phase": "Running", "podIP": "127.1.0.1"}}
    patched = api.patch(f"{pods}/p/status", body).body

    assert "nodeName" not in patched["spec"]
    assert patched["status"]["phase"] == "Running"
    assert patched["status"]["podIP"] == "127.1.0.1"


def test_scale_can_be_applied(api: Client, deployment_path: str) -> None:
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d"},
        "spec": {"replicas": 7},
    }

    reply = api.send(
        "PATCH",
        f"{deployment_path}/scale",
        body,
        content_type=APPLY,
        params={"fieldManager": "scaler", "force": "true"},
    )

    assert reply.code == 200
    assert reply.body["spec"]["replicas"] == 7
