"""Spec and status are written apart, and the generation counts specs."""

from tests.conformance.client import Client
from tests.conformance.manifests import config_map, widget


def test_generation_counts_changes_of_the_spec(api: Client, widgets: str) -> None:
    created = api.post(widgets, widget()).body
    relabelled = api.patch(f"{widgets}/w", {"metadata": {"labels": {"a": "b"}}}).body
    recolored = api.patch(f"{widgets}/w", {"spec": {"color": "blue"}}).body

    generations = [o["metadata"]["generation"] for o in (created, relabelled, recolored)]
    assert generations == [1, 1, 2]


def test_a_config_map_has_no_generation(api: Client, namespace: str) -> None:
    created = api.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map()).body

    assert "generation" not in created["metadata"]


def test_status_is_ignored_on_create(api: Client, widgets: str) -> None:
    body = {**widget(), "status": {"phase": "Mine"}}

    assert "status" not in api.post(widgets, body).body


def test_status_is_ignored_through_the_object(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    patched = api.patch(f"{widgets}/w", {"status": {"phase": "Mine"}}).body

    assert "status" not in patched


def test_spec_is_ignored_through_the_status(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    body = {"spec": {"color": "blue"}, "status": {"phase": "Up"}}
    patched = api.patch(f"{widgets}/w/status", body).body

    assert patched["spec"]["color"] == "red"
    assert patched["status"] == {"phase": "Up"}
    assert patched["metadata"]["generation"] == 1


def test_labels_are_ignored_through_the_status(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    body = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Up"}}
    patched = api.patch(f"{widgets}/w/status", body).body

    assert "labels" not in patched["metadata"]


def test_status_survives_a_replacement_of_the_object(api: Client, widgets: str) -> None:
    api.post(widgets, widget())
    current = api.patch(f"{widgets}/w/status", {"status": {"phase": "Up"}}).body
    current["spec"]["color"] = "blue"
    del current["status"]

    replaced = api.put(f"{widgets}/w", current).body

    assert replaced["status"] == {"phase": "Up"}
    assert replaced["spec"]["color"] == "blue"
