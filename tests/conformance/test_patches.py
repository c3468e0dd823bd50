"""The three ways of changing a part of an object."""

import pytest

from tests.conformance.client import JSON_PATCH, STRATEGIC, Client
from tests.conformance.manifests import config_map, deployment, widget


@pytest.fixture
def map_path(api: Client, namespace: str) -> str:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    api.post(maps, config_map(a="1", b="2"))
    return f"{maps}/c"


@pytest.fixture
def deployment_path(api: Client, namespace: str) -> str:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(deployments, deployment())
    return f"{deployments}/d"


def test_a_merge_patch_changes_adds_and_removes(api: Client, map_path: str) -> None:
    reply = api.patch(map_path, {"data": {"a": "3", "b": None, "c": "4"}})

    assert reply.code == 200
    assert reply.body["data"] == {"a": "3", "c": "4"}


def test_a_merge_patch_replaces_lists(api: Client, widgets: str) -> None:
    api.post(widgets, widget(tags=["a", "b"]))

    patched = api.patch(f"{widgets}/w", {"spec": {"tags": ["c"]}}).body

    assert patched["spec"]["tags"] == ["c"]


def test_an_empty_patch_changes_nothing(api: Client, map_path: str) -> None:
    before = api.get(map_path).body

    after = api.patch(map_path, {}).body

    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_patch_may_name_the_version_that_it_rests_on(api: Client, map_path: str) -> None:
    version = api.get(map_path).body["metadata"]["resourceVersion"]

    good = api.patch(map_path, {"metadata": {"resourceVersion": version}, "data": {"a": "5"}})
    stale = api.patch(map_path, {"metadata": {"resourceVersion": version}, "data": {"a": "6"}})

    assert good.code == 200
    assert (stale.code, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in stale.message


def test_patching_what_does_not_exist_is_not_found(api: Client, namespace: str) -> None:
    reply = api.patch(f"/api/v1/namespaces/{namespace}/configmaps/none", {"data": {}})

    assert reply.code == 404


def test_an_unknown_patch_format_is_refused(api: Client, map_path: str) -> None:
    reply = api.patch(map_path, {"data": {}}, "application/json")

    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")


def test_a_json_patch_applies_its_operations_in_order(api: Client, map_path: str) -> None:
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "copy", "from": "/data/a", "path": "/data/c"},
        {"op": "move", "from": "/data/b", "path": "/data/d"},
        {"op": "add", "path": "/metadata/labels", "value": {"x/y": "z"}},
        {"op": "remove", "path": "/metadata/labels/x~1y"},
    ]

    reply = api.patch(map_path, operations, JSON_PATCH)

    assert reply.code == 200
    assert reply.body["data"] == {"a": "9", "c": "9", "d": "2"}
    assert "labels" not in reply.body["metadata"]


def test_a_json_patch_whose_test_fails_changes_nothing(api: Client, map_path: str) -> None:
    operations = [
        {"op": "replace", "path": "/data/b", "value": "9"},
        {"op": "test", "path": "/data/a", "value": "other"},
    ]

    reply = api.patch(map_path, operations, JSON_PATCH)

    assert (reply.code, reply.reason) == (422, "Invalid")
    assert api.get(map_path).body["data"] == {"a": "1", "b": "2"}


def test_a_json_patch_of_a_missing_place_is_refused(api: Client, map_path: str) -> None:
    operations = [{"op": "remove", "path": "/data/none"}]

    assert api.patch(map_path, operations, JSON_PATCH).code == 422


def test_a_json_patch_can_test_the_version(api: Client, map_path: str) -> None:
    version = api.get(map_path).body["metadata"]["resourceVersion"]
    finalizers = {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]}
    guard = {"op": "test", "path": "/metadata/resourceVersion", "value": version}

    first = api.patch(map_path, [guard, finalizers], JSON_PATCH)
    second = api.patch(map_path, [guard, finalizers], JSON_PATCH)
    api.patch(map_path, {"metadata": {"finalizers": None}})

    assert first.code == 200
    assert second.code == 422


def test_a_strategic_patch_merges_containers_by_name(api: Client, deployment_path: str) -> None:
    container = {"name": "app", "image": "registry.example/app:2"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}

    spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]["template"]["spec"]

    assert len(spec["containers"]) == 1
    assert spec["containers"][0]["image"] == "registry.example/app:2"
    assert spec["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_a_strategic_patch_adds_a_container(api: Client, deployment_path: str) -> None:
    container = {"name": "side", "image": "registry.example/side:1"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}

    spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]["template"]["spec"]

    assert {c["name"] for c in spec["containers"]} == {"app", "side"}


def test_a_strategic_patch_deletes_an_item(api: Client, deployment_path: str) -> None:
    container = {"name": "app", "env": [{"name": "A", "$patch": "delete"}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}

    spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]["template"]["spec"]

    assert not spec["containers"][0].get("env")


def test_a_strategic_patch_merges_ports_and_variables(api: Client, deployment_path: str) -> None:
    container = {
        "name": "app",
        "env": [{"name": "B", "value": "2"}],
        "ports": [{"containerPort": 9000, "name": "metrics"}],
    }
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}

    spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]["template"]["spec"]

    merged = spec["containers"][0]
    assert {v["name"]: v["value"] for v in merged["env"]} == {"A": "1", "B": "2"}
    assert {p["containerPort"] for p in merged["ports"]} == {8000, 9000}


def test_a_strategic_patch_replaces_lists_without_a_key(api: Client, deployment_path: str) -> None:
    for arguments in (["--one"], ["--two"]):
        container = {"name": "app", "args": arguments}
        patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
        spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]["template"]["spec"]

    assert spec["containers"][0]["args"] == ["--two"]


def test_a_strategic_patch_keeps_only_what_it_retains(api: Client, deployment_path: str) -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    spec = api.patch(deployment_path, patch, STRATEGIC).body["spec"]

    assert spec["strategy"] == {"type": "Recreate"}


def test_a_strategic_patch_merges_conditions_by_type(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    body = {
        "metadata": {"name": "p"},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "a", "image": "i"}]},
    }
    api.post(pods, body)
    for kind, status in (("Ready", "False"), ("Other", "True"), ("Ready", "True")):
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        patched = api.patch(f"{pods}/p/status", patch, STRATEGIC).body

    conditions = {c["type"]: c["status"] for c in patched["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert conditions["Other"] == "True"


def test_custom_resources_take_no_strategic_patch(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    reply = api.patch(f"{widgets}/w", {"spec": {}}, STRATEGIC)

    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")
