"""Definitions of custom resources: completed, checked, in versions, and gone with their objects."""

from typing import Any

from tests.conformance.client import Client, Json
from tests.conformance.conftest import eventually
from tests.conformance.manifests import crd

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _other(name: str, **version: Any) -> Json:
    body = crd()
    body["metadata"]["name"] = f"{name}s.other.fleetline.dev"
    body["spec"]["group"] = "other.fleetline.dev"
    body["spec"]["names"] = {"plural": f"{name}s", "kind": name.capitalize()}
    body["spec"]["versions"][0].update(version)
    return body


def test_a_definition_is_completed_and_established(api: Client) -> None:
    body = _other("gadget")
    try:
        spec = api.post(CRDS, body).body["spec"]
        path = f"{CRDS}/gadgets.other.fleetline.dev"
        eventually(lambda: api.get(path).body.get("status", {}).get("conditions"))
        status = api.get(path).body["status"]
    finally:
        api.delete(f"{CRDS}/gadgets.other.fleetline.dev")

    assert spec["names"]["singular"] == "gadget"
    assert spec["names"]["listKind"] == "GadgetList"
    assert spec["conversion"] == {"strategy": "None"}
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["kind"] == "Gadget"


def test_a_definition_is_named_after_what_it_defines(api: Client) -> None:
    body = _other("gadget")
    body["metadata"]["name"] = "wrong.other.fleetline.dev"

    reply = api.post(CRDS, body)

    assert reply.code == 422
    assert 'must be spec.names.plural+"."+spec.group' in reply.message


def test_a_definition_needs_types(api: Client) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}}

    reply = api.post(CRDS, _other("gadget", schema=schema))

    assert reply.code == 422
    assert "properties[spec].type: Required value" in reply.message


def test_a_definition_with_a_broken_rule_is_refused(api: Client) -> None:
    rule = {"rule": "self.("}
    spec = {"type": "object", "x-kubernetes-validations": [rule]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}

    reply = api.post(CRDS, _other("gadget", schema=schema))

    assert reply.code == 422
    assert "x-kubernetes-validations[0].rule" in reply.message
    assert "compilation failed" in reply.message


def test_two_versions_show_the_same_objects(api: Client, namespace: str) -> None:
    body = _other("gizmo")
    older = {**body["spec"]["versions"][0], "name": "v1alpha1", "storage": False}
    body["spec"]["versions"].append(older)
    try:
        api.post(CRDS, body)
        root = "/apis/other.fleetline.dev/{}/namespaces/" + namespace + "/gizmos"
        eventually(lambda: api.get(root.format("v1alpha1")).code == 200)
        thing = {
            "apiVersion": "other.fleetline.dev/v1alpha1",
            "kind": "Gizmo",
            "metadata": {"name": "g"},
            "spec": {"color": "red"},
        }
        eventually(lambda: api.post(root.format("v1alpha1"), thing).code in (201, 409))
        older_view = api.get(root.format("v1alpha1") + "/g").body
        newer_view = api.get(root.format("v1") + "/g").body
    finally:
        api.delete(f"{CRDS}/gizmos.other.fleetline.dev")

    assert older_view["apiVersion"] == "other.fleetline.dev/v1alpha1"
    assert newer_view["apiVersion"] == "other.fleetline.dev/v1"
    assert older_view["metadata"]["uid"] == newer_view["metadata"]["uid"]


def test_objects_go_with_their_definition(api: Client, namespace: str) -> None:
    body = _other("trinket")
    path = f"{CRDS}/trinkets.other.fleetline.dev"
    root = f"/apis/other.fleetline.dev/v1/namespaces/{namespace}/trinkets"
    api.post(CRDS, body)
    eventually(lambda: api.get(root).code == 200)
    thing = {
        "apiVersion": "other.fleetline.dev/v1",
        "kind": "Trinket",
        "metadata": {"name": "t"},
        "spec": {"color": "red"},
    }
    eventually(lambda: api.post(root, thing).code in (201, 409))

    api.delete(path)

    eventually(lambda: api.get(path).code == 404)
    eventually(lambda: api.get(f"{root}/t").code == 404)
