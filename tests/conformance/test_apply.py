"""Server-side apply: who owns which field."""

import pytest

from tests.conformance.client import Client, Json
from tests.conformance.manifests import config_map, deployment, widget


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/c"


@pytest.fixture
def deployment_path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/d"


def managers(obj: Json) -> dict[tuple[str, str], Json]:
    return {
        (entry["manager"], entry["operation"]): entry
        for entry in obj["metadata"].get("managedFields", [])
    }


def test_apply_creates(api: Client, path: str) -> None:
    reply = api.apply(path, config_map(), "one")

    assert reply.code == 201
    entry = managers(reply.body)[("one", "Apply")]
    assert entry["apiVersion"] == "v1"
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_applying_again_changes_nothing(api: Client, path: str) -> None:
    first = api.apply(path, config_map(), "one").body

    second = api.apply(path, config_map(), "one")

    assert second.code == 200
    assert second.body["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_apply_needs_a_manager(api: Client, path: str) -> None:
    reply = api.send("PATCH", path, config_map(), content_type="application/apply-patch+yaml")

    assert (reply.code, reply.reason) == (422, "Invalid")
    assert "fieldManager: Required value: is required for apply patch" in reply.message


def test_apply_reads_yaml(api: Client, path: str) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"

    assert api.apply(path, text, "one").body["data"] == {"a": "1"}


def test_two_managers_share_an_object(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1"), "one")

    both = api.apply(path, config_map(b="2"), "two").body

    assert both["data"] == {"a": "1", "b": "2"}
    assert set(managers(both)) == {("one", "Apply"), ("two", "Apply")}


def test_a_field_given_up_goes(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1", b="2"), "one")

    reply = api.apply(path, config_map(b="2"), "one")

    assert reply.body["data"] == {"b": "2"}


def test_a_field_that_another_holds_too_stays(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1", b="2"), "one")
    api.apply(path, config_map(a="1"), "two")

    reply = api.apply(path, config_map(b="2"), "one")

    assert reply.body["data"] == {"a": "1", "b": "2"}


def test_a_conflict_between_appliers_is_refused(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1"), "one")

    reply = api.apply(path, config_map(a="2"), "two")

    assert (reply.code, reply.reason) == (409, "Conflict")
    assert reply.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert reply.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]


def test_a_conflict_with_an_update_names_its_version(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1"), "one")
    api.patch(path, {"data": {"a": "3"}}, params={"fieldManager": "hand"})

    reply = api.apply(path, config_map(a="1"), "one")

    assert reply.code == 409
    assert 'conflict with "hand" using v1' in reply.message
    assert reply.message.endswith(": .data.a")


def test_several_conflicts_are_listed(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1", b="1"), "one")

    reply = api.apply(path, config_map(a="2", b="2"), "two")

    assert reply.message == (
        'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'
    )


def test_force_takes_the_field(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1", b="1"), "one")

    forced = api.apply(path, config_map(a="2"), "two", force="true").body

    assert forced["data"] == {"a": "2", "b": "1"}
    found = managers(forced)
    assert found[("one", "Apply")]["fieldsV1"] == {"f:data": {"f:b": {}}}
    assert found[("two", "Apply")]["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_an_update_takes_the_field(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1", b="1"), "one")

    patched = api.patch(path, {"data": {"a": "3"}}, params={"fieldManager": "hand"}).body

    found = managers(patched)
    assert found[("one", "Apply")]["fieldsV1"] == {"f:data": {"f:b": {}}}
    assert found[("hand", "Update")]["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_agreeing_is_no_conflict(api: Client, path: str) -> None:
    api.apply(path, config_map(a="1"), "one")

    assert api.apply(path, config_map(a="1"), "two").code == 200


def test_the_default_manager_is_the_first_word_of_the_user_agent(
    api: Client, namespace: str
) -> None:
    created = api.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map()).body

    entry = managers(created)[("conformance", "Update")]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


def test_status_is_owned_apart(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    patched = api.patch(f"{widgets}/w/status", {"status": {"phase": "Up"}}).body

    entries = [e for e in patched["metadata"]["managedFields"] if e.get("subresource") == "status"]
    assert len(entries) == 1
    assert entries[0]["fieldsV1"] == {"f:status": {".": {}, "f:phase": {}}}


def test_items_are_owned_by_their_key(api: Client, widgets: str) -> None:
    body = widget(parts=[{"name": "a", "size": 1}])

    created = api.apply(f"{widgets}/w", body, "one").body

    fields = managers(created)[("one", "Apply")]["fieldsV1"]
    item: Json = {".": {}, "f:name": {}, "f:size": {}}
    assert fields["f:spec"]["f:parts"] == {'k:{"name":"a"}': item}


def test_managers_share_a_keyed_list(api: Client, widgets: str) -> None:
    api.apply(f"{widgets}/w", widget(parts=[{"name": "a", "size": 1}]), "one")
    api.apply(f"{widgets}/w", widget(parts=[{"name": "b", "size": 2}]), "two")

    reply = api.apply(f"{widgets}/w", widget(), "one")

    assert reply.body["spec"]["parts"] == [{"name": "b", "size": 2}]


def test_managers_share_a_set(api: Client, widgets: str) -> None:
    api.apply(f"{widgets}/w", widget(tags=["a", "b"]), "one")
    both = api.apply(f"{widgets}/w", widget(tags=["b", "c"]), "two").body

    after = api.apply(f"{widgets}/w", widget(tags=["a"]), "one").body

    assert set(both["spec"]["tags"]) == {"a", "b", "c"}
    assert set(after["spec"]["tags"]) == {"a", "b", "c"}


def test_a_conflict_in_a_keyed_list_names_the_item(api: Client, widgets: str) -> None:
    api.apply(f"{widgets}/w", widget(parts=[{"name": "a", "size": 1}]), "one")

    reply = api.apply(f"{widgets}/w", widget(parts=[{"name": "a", "size": 2}]), "two")

    assert reply.causes[0]["field"] == '.spec.parts[name="a"].size'


def test_containers_are_applied_by_name(api: Client, deployment_path: str) -> None:
    api.apply(deployment_path, deployment(), "one")
    other = deployment()
    other["spec"]["template"]["spec"]["containers"] = [
        {"name": "side", "image": "registry.example/side:1"}
    ]

    both = api.apply(deployment_path, other, "two").body

    names = {c["name"] for c in both["spec"]["template"]["spec"]["containers"]}
    assert names == {"app", "side"}


def test_scaling_takes_the_replicas_from_the_applier(api: Client, deployment_path: str) -> None:
    api.apply(deployment_path, deployment(replicas=2), "one")
    api.patch(
        f"{deployment_path}/scale", {"spec": {"replicas": 3}}, params={"fieldManager": "scaler"}
    )

    again = api.apply(deployment_path, deployment(replicas=2), "one")

    assert again.code == 409
    assert 'conflict with "scaler" with subresource "scale" using apps/v1' in again.message
    assert again.causes[0]["field"] == ".spec.replicas"


def test_an_applier_that_leaves_replicas_out_never_conflicts(
    api: Client, deployment_path: str
) -> None:
    api.apply(deployment_path, deployment(), "one")
    api.patch(f"{deployment_path}/scale", {"spec": {"replicas": 3}})

    again = api.apply(deployment_path, deployment(), "one")

    assert again.code == 200
    assert again.body["spec"]["replicas"] == 3


def test_managed_fields_cannot_be_applied(api: Client, path: str) -> None:
    body = config_map()
    body["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply"}]

    reply = api.apply(path, body, "one")

    assert reply.code == 400
    assert "metadata.managedFields must be nil" in reply.message


def test_managed_fields_can_be_cleared(api: Client, path: str) -> None:
    api.apply(path, config_map(), "one")

    cleared = api.patch(path, {"metadata": {"managedFields": [{}]}}).body

    assert "managedFields" not in cleared["metadata"]


def test_apply_of_an_unknown_field_is_refused(api: Client, path: str) -> None:
    reply = api.apply(path, {**config_map(), "dta": {}}, "one")

    assert reply.code >= 400
    assert "field not declared in schema" in reply.message


def test_status_can_be_applied(api: Client, widgets: str) -> None:
    api.post(widgets, widget())
    body = widget()
    del body["spec"]
    body["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}

    reply = api.apply(f"{widgets}/w/status", body, "controller")

    assert reply.code == 200
    assert reply.body["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert reply.body["spec"]["color"] == "red"
