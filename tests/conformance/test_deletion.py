"""How objects go: at once, with grace, or when their last finalizer is gone."""

import pytest

from tests.conformance.client import JSON_PATCH, Client
from tests.conformance.conftest import eventually
from tests.conformance.manifests import config_map, deployment, pod, widget


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_a_deletion_is_confirmed_with_a_status(api: Client, maps: str) -> None:
    created = api.post(maps, config_map()).body

    reply = api.delete(f"{maps}/c")

    assert reply.code == 200
    assert (reply.body["kind"], reply.body["status"]) == ("Status", "Success")
    assert reply.body["details"] == {
        "name": "c", "kind": "configmaps", "uid": created["metadata"]["uid"],
    }  # fmt: skip
    assert api.get(f"{maps}/c").code == 404


def test_deleting_what_does_not_exist_is_not_found(api: Client, maps: str) -> None:
    assert api.delete(f"{maps}/none").code == 404


def test_a_finalizer_holds_an_object(api: Client, widgets: str) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.post(widgets, body)

    marked = api.delete(f"{widgets}/w").body

    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert api.get(f"{widgets}/w").code == 200
    api.patch(f"{widgets}/w", {"metadata": {"finalizers": None}})


def test_the_last_finalizer_gone_removes_the_object(api: Client, widgets: str) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.post(widgets, body)
    api.delete(f"{widgets}/w")

    reply = api.patch(
        f"{widgets}/w", [{"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH
    )

    assert reply.code == 200
    assert api.get(f"{widgets}/w").code == 404


def test_no_finalizer_is_added_to_what_is_going(api: Client, widgets: str) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.post(widgets, body)
    api.delete(f"{widgets}/w")

    finalizers = ["example.com/hold", "example.com/more"]
    reply = api.patch(f"{widgets}/w", {"metadata": {"finalizers": finalizers}})
    api.patch(f"{widgets}/w", {"metadata": {"finalizers": None}})

    assert reply.code == 422
    assert "no new finalizers can be added if the object is being deleted" in reply.message


def test_a_deletion_may_ask_for_the_very_object(api: Client, maps: str) -> None:
    created = api.post(maps, config_map()).body["metadata"]

    wrong = api.delete(f"{maps}/c", {"preconditions": {"uid": "other"}})
    stale = api.delete(f"{maps}/c", {"preconditions": {"resourceVersion": "1"}})
    right = api.delete(f"{maps}/c", {"preconditions": {"uid": created["uid"]}})

    assert (wrong.code, wrong.reason) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match" in wrong.message
    assert stale.code == 409
    assert right.code == 200


def test_a_dry_deletion_keeps_the_object(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    assert api.delete(f"{maps}/c", params={"dryRun": "All"}).code == 200
    assert api.get(f"{maps}/c").code == 200


def test_a_collection_is_deleted_by_selector(api: Client, maps: str) -> None:
    for name in ("a", "b", "keep"):
        body = config_map(name)
        body["metadata"]["labels"] = {"go": "no" if name == "keep" else "yes"}
        api.post(maps, body)

    reply = api.delete(maps, params={"labelSelector": "go=yes"})

    assert reply.code == 200
    left = api.get(maps, params={"labelSelector": "go"}).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["keep"]


def test_a_pod_without_a_node_goes_at_once(api: Client, pods: str) -> None:
    api.post(pods, pod())

    reply = api.delete(f"{pods}/p")

    assert reply.code == 200
    assert reply.body["kind"] == "Pod"
    assert api.get(f"{pods}/p").code == 404


def test_a_pod_on_a_node_waits_for_its_kubelet(api: Client, pods: str) -> None:
    api.post(pods, pod(nodeName="somewhere", terminationGracePeriodSeconds=20))

    marked = api.delete(f"{pods}/p").body
    still = api.get(f"{pods}/p").body
    api.delete(f"{pods}/p", {"gracePeriodSeconds": 0})

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    assert still["metadata"]["deletionTimestamp"]
    assert api.get(f"{pods}/p").code == 404


def test_grace_can_be_shortened(api: Client, pods: str) -> None:
    api.post(pods, pod(nodeName="somewhere"))
    first = api.delete(f"{pods}/p").body

    second = api.delete(f"{pods}/p", {"gracePeriodSeconds": 5}).body
    api.delete(f"{pods}/p", {"gracePeriodSeconds": 0})

    assert first["metadata"]["deletionGracePeriodSeconds"] == 30
    assert second["metadata"]["deletionGracePeriodSeconds"] == 5


def test_a_namespace_ends_with_its_content(api: Client, namespace: str, maps: str) -> None:
    api.post(maps, config_map())

    marked = api.delete(f"/api/v1/namespaces/{namespace}").body

    assert marked["status"]["phase"] == "Terminating"
    eventually(lambda: api.get(f"/api/v1/namespaces/{namespace}").code == 404)
    assert api.get(f"{maps}/c").code == 404


def test_nothing_is_created_in_a_namespace_that_ends(
    api: Client, namespace: str, widgets: str
) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.post(widgets, body)
    api.delete(f"/api/v1/namespaces/{namespace}")

    reply = api.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map())
    api.patch(f"{widgets}/w", {"metadata": {"finalizers": None}})

    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert "because it is being terminated" in reply.message


def test_dependents_go_with_their_owner(api: Client, maps: str) -> None:
    owner = api.post(maps, config_map("owner")).body["metadata"]
    dependent = config_map("dependent")
    dependent["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    ]
    api.post(maps, dependent)

    api.delete(f"{maps}/owner", {"propagationPolicy": "Background"})

    eventually(lambda: api.get(f"{maps}/dependent").code == 404)


def test_orphans_stay(api: Client, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    api.post(deployments, deployment())
    eventually(lambda: api.get(sets).body["items"])

    api.delete(f"{deployments}/d", {"propagationPolicy": "Orphan"})

    eventually(lambda: api.get(f"{deployments}/d").code == 404)
    left = api.get(sets).body["items"]
    assert len(left) == 1
    assert not left[0]["metadata"].get("ownerReferences")
