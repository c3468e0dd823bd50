"""Creating and replacing objects: names, identity, versions."""

import pytest

from tests.conformance.client import Client
from tests.conformance.manifests import config_map, widget


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def test_a_new_object_gets_an_identity(api: Client, maps: str, namespace: str) -> None:
    reply = api.post(maps, config_map())

    metadata = reply.body["metadata"]
    assert reply.code == 201
    assert metadata["namespace"] == namespace
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdigit()
    assert metadata["creationTimestamp"].endswith("Z")


def test_a_second_object_of_one_name_is_refused(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    reply = api.post(maps, config_map())

    assert (reply.code, reply.reason) == (409, "AlreadyExists")
    assert reply.message == 'configmaps "c" already exists'


def test_a_name_is_generated_from_a_prefix(api: Client, maps: str) -> None:
    body = {**config_map(), "metadata": {"generateName": "gen-"}}

    names = {api.post(maps, body).body["metadata"]["name"] for _ in range(2)}

    assert len(names) == 2
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


def test_an_object_without_a_name_is_refused(api: Client, maps: str) -> None:
    reply = api.post(maps, {"data": {}})

    assert (reply.code, reply.reason) == (422, "Invalid")
    assert "name or generateName is required" in reply.message


def test_a_name_must_be_a_domain_name(api: Client, maps: str) -> None:
    reply = api.post(maps, config_map("Not_Valid"))

    assert reply.code == 422
    assert reply.causes[0]["field"] == "metadata.name"
    assert "a lowercase RFC 1123 subdomain must consist of" in reply.message


def test_a_label_value_must_be_valid(api: Client, maps: str) -> None:
    body = config_map()
    body["metadata"]["labels"] = {"a": "not valid"}

    reply = api.post(maps, body)

    assert reply.code == 422
    assert reply.causes[0]["field"] == "metadata.labels"
    assert "a valid label must be an empty string or consist of" in reply.message


def test_creating_with_a_resource_version_is_refused(api: Client, maps: str) -> None:
    body = config_map()
    body["metadata"]["resourceVersion"] = "1"

    reply = api.post(maps, body)

    assert reply.code in (400, 500)
    assert "resourceVersion should not be set on objects to be created" in reply.message


def test_a_namespace_must_exist(api: Client) -> None:
    reply = api.post("/api/v1/namespaces/nowhere/configmaps", config_map())

    assert (reply.code, reply.reason) == (404, "NotFound")
    assert reply.message == 'namespaces "nowhere" not found'


def test_the_namespace_of_body_and_url_must_agree(api: Client, maps: str) -> None:
    body = config_map()
    body["metadata"]["namespace"] = "elsewhere"

    reply = api.post(maps, body)

    assert (reply.code, reply.reason) == (400, "BadRequest")
    assert "the namespace of the provided object does not match" in reply.message


def test_the_kind_must_fit_the_url(api: Client, maps: str) -> None:
    body = {**config_map(), "kind": "Secret"}

    assert api.post(maps, body).code == 400


def test_a_body_that_is_not_json_is_refused(api: Client, maps: str) -> None:
    reply = api.post(maps, "{", content_type="application/json")

    assert (reply.code, reply.reason) == (400, "BadRequest")


def test_an_unknown_media_type_is_refused(api: Client, maps: str) -> None:
    reply = api.post(maps, "a: b", content_type="application/x-nothing")

    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")


def test_a_missing_object_is_not_found(api: Client, maps: str) -> None:
    reply = api.get(f"{maps}/nothing")

    assert (reply.code, reply.reason) == (404, "NotFound")
    assert reply.message == 'configmaps "nothing" not found'
    assert reply.body["details"] == {"name": "nothing", "kind": "configmaps"}


def test_a_missing_custom_object_is_named_with_its_group(api: Client, widgets: str) -> None:
    reply = api.get(f"{widgets}/nothing")

    assert reply.message == 'widgets.conformance.fleetline.dev "nothing" not found'


def test_a_replacement_moves_the_version(api: Client, maps: str) -> None:
    first = api.post(maps, config_map()).body
    first["data"] = {"a": "2"}

    second = api.put(f"{maps}/c", first)

    assert second.code == 200
    assert second.body["data"] == {"a": "2"}
    before, after = first["metadata"]["resourceVersion"], second.body["metadata"]["resourceVersion"]
    assert int(after) > int(before)


def test_a_stale_replacement_is_refused(api: Client, maps: str) -> None:
    first = api.post(maps, config_map()).body
    api.patch(f"{maps}/c", {"data": {"b": "1"}})

    reply = api.put(f"{maps}/c", first)

    assert (reply.code, reply.reason) == (409, "Conflict")
    assert reply.message == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please'
        " apply your changes to the latest version and try again"
    )


def test_a_config_map_may_be_replaced_without_a_version(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    assert api.put(f"{maps}/c", config_map(a="3")).code == 200


def test_a_custom_object_may_not_be_replaced_without_a_version(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    reply = api.put(f"{widgets}/w", widget())

    assert reply.code == 422
    assert "metadata.resourceVersion: Invalid value" in reply.message
    assert "must be specified for an update" in reply.message


def test_the_name_of_body_and_url_must_agree(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    reply = api.put(f"{maps}/c", config_map("other"))

    assert reply.code == 400
    assert "the name of the object (other) does not match the name on the URL (c)" in reply.message


def test_replacing_what_does_not_exist_is_not_found(api: Client, maps: str) -> None:
    assert api.put(f"{maps}/c", config_map()).code == 404


def test_writing_the_same_again_changes_nothing(api: Client, maps: str) -> None:
    first = api.post(maps, config_map()).body

    second = api.put(f"{maps}/c", first).body

    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_identity_cannot_be_patched(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    reply = api.patch(f"{maps}/c", {"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}})

    assert (reply.code, reply.reason) == (422, "Invalid")
    assert reply.causes[0]["field"] == "metadata.uid"
    assert "field is immutable" in reply.message


def test_another_object_of_the_same_name_is_not_replaced(api: Client, maps: str) -> None:
    body = api.post(maps, config_map()).body
    body["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"

    reply = api.put(f"{maps}/c", body)

    assert (reply.code, reply.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in reply.message


def test_a_dry_run_answers_and_keeps_nothing(api: Client, maps: str) -> None:
    reply = api.post(maps, config_map(), params={"dryRun": "All"})

    assert reply.code == 201
    assert reply.body["metadata"]["uid"]
    assert api.get(f"{maps}/c").code == 404


def test_a_dry_run_patch_keeps_the_old(api: Client, maps: str) -> None:
    api.post(maps, config_map())

    reply = api.patch(f"{maps}/c", {"data": {"a": "2"}}, params={"dryRun": "All"})

    assert reply.body["data"] == {"a": "2"}
    assert api.get(f"{maps}/c").body["data"] == {"a": "1"}


def test_an_unknown_dry_run_is_refused(api: Client, maps: str) -> None:
    assert api.post(maps, config_map(), params={"dryRun": "Some"}).code in (400, 422)
