"""Custom resources: schema, defaults, pruning, strictness."""

import pytest

from tests.conformance.client import Client, Json
from tests.conformance.manifests import widget


def test_defaults_are_filled(api: Client, widgets: str) -> None:
    spec = api.post(widgets, widget(parts=[{"name": "a"}])).body["spec"]

    assert spec["replicas"] == 1
    assert spec["parts"] == [{"name": "a", "size": 7}]


def test_null_takes_the_default(api: Client, widgets: str) -> None:
    assert api.post(widgets, widget(replicas=None)).body["spec"]["replicas"] == 1


def test_unknown_fields_are_dropped(api: Client, widgets: str) -> None:
    spec = api.post(widgets, widget(unknown=1)).body["spec"]

    assert "unknown" not in spec


def test_unknown_fields_are_kept_where_the_schema_says_so(api: Client, widgets: str) -> None:
    spec = api.post(widgets, widget(free={"a": {"b": [1]}})).body["spec"]

    assert spec["free"] == {"a": {"b": [1]}}


def test_unknown_fields_are_warned_of(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(unknown=1))

    assert reply.code == 201
    assert 'unknown field \\"spec.unknown\\"' in reply.warnings


def test_unknown_fields_can_be_ignored(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(unknown=1), params={"fieldValidation": "Ignore"})

    assert (reply.code, reply.warnings) == (201, "")


def test_unknown_fields_can_be_refused(api: Client, widgets: str) -> None:
    reply = api.post(widgets, widget(unknown=1), params={"fieldValidation": "Strict"})

    assert (reply.code, reply.reason) == (400, "BadRequest")
    assert reply.message == (
        'Widget in version "v1" cannot be handled as a Widget:'
        ' strict decoding error: unknown field "spec.unknown"'
    )


def test_unknown_fields_of_list_items_are_told_with_their_index(api: Client, widgets: str) -> None:
    body = widget(parts=[{"name": "a", "nope": 1}])

    reply = api.post(widgets, body, params={"fieldValidation": "Strict"})

    assert 'unknown field "spec.parts[0].nope"' in reply.message


def test_duplicate_fields_can_be_refused(api: Client, widgets: str) -> None:
    body = (
        '{"apiVersion":"conformance.fleetline.dev/v1","kind":"Widget","metadata":{"name":"w"},'
        '"spec":{"color":"red","color":"blue"}}'
    )

    reply = api.post(widgets, body, params={"fieldValidation": "Strict"})

    assert reply.code == 400
    assert 'duplicate field "spec.color"' in reply.message


def test_unknown_fields_of_a_built_in_kind_can_be_refused(api: Client, namespace: str) -> None:
    body = {"metadata": {"name": "c"}, "dta": {}}

    path = f"/api/v1/namespaces/{namespace}/configmaps"
    reply = api.post(path, body, params={"fieldValidation": "Strict"})

    assert reply.code == 400
    assert 'strict decoding error: unknown field "dta"' in reply.message


def test_a_strict_patch_refuses_unknown_fields(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    reply = api.patch(f"{widgets}/w", {"spec": {"nope": 1}}, params={"fieldValidation": "Strict"})

    assert reply.code == 422
    assert 'strict decoding error: unknown field "spec.nope"' in reply.message


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param(
            {"color": "green"},
            "spec.color",
            'Unsupported value: "green": supported values: "red", "blue", "fixed"',
            id="a value outside the enum",
        ),
        pytest.param(
            {"replicas": -1},
            "spec.replicas",
            "Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
            id="a number below the minimum",
        ),
        pytest.param(
            {"max": 101},
            "spec.max",
            "Invalid value: 101: spec.max in body should be less than or equal to 100",
            id="a number above the maximum",
        ),
        pytest.param(
            {"replicas": "many"},
            "spec.replicas",
            'Invalid value: "string": spec.replicas in body must be of type integer: "string"',
            id="a text for a number",
        ),
        pytest.param(
            {"replicas": 1.5},
            "spec.replicas",
            'Invalid value: "number": spec.replicas in body must be of type integer: "number"',
            id="a fraction for a whole number",
        ),
        pytest.param(
            {"code": "UPPER"},
            "spec.code",
            "Invalid value: \"UPPER\": spec.code in body should match '^[a-z]+$'",
            id="a text that does not match",
        ),
        pytest.param(
            {"code": "abcdef"},
            "spec.code",
            "Too long: may not be more than 5 bytes",
            id="a text that is too long",
        ),
        pytest.param(
            {"code": "a"},
            "spec.code",
            'Invalid value: "a": spec.code in body should be at least 2 chars long',
            id="a text that is too short",
        ),
        pytest.param(
            {"parts": [{"name": n} for n in "abcd"]},
            "spec.parts",
            "Too many: 4: must have at most 3 items",
            id="a list that is too long",
        ),
        pytest.param(
            {"parts": [{}]},
            "spec.parts[0].name",
            "Required value",
            id="an item without a required field",
        ),
        pytest.param(
            {"labels": {"a": "1", "b": "2", "c": "3", "d": "4"}},
            "spec.labels",
            "Too many: 4: must have at most 3 items",
            id="a map that is too large",
        ),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "a"}]},
            "spec.parts[1]",
            'Duplicate value: {"name":"a"}',
            id="two items of one key",
        ),
        pytest.param(
            {"tags": ["x", "x"]},
            "spec.tags[1]",
            'Duplicate value: "x"',
            id="two equal members of a set",
        ),
    ],
)
def test_the_schema_refuses(
    api: Client, widgets: str, spec: Json, field: str, message: str
) -> None:
    reply = api.post(widgets, widget(**spec))

    assert (reply.code, reply.reason) == (422, "Invalid")
    assert (reply.causes[0]["field"], reply.causes[0]["message"]) == (field, message)
    assert reply.message.startswith('Widget.conformance.fleetline.dev "w" is invalid: ')


def test_a_missing_required_field_is_named(api: Client, widgets: str) -> None:
    body = widget()
    del body["spec"]["color"]

    reply = api.post(widgets, body)

    assert "spec.color: Required value" in reply.message


def test_a_number_or_a_text_is_either(api: Client, widgets: str) -> None:
    assert api.post(widgets, widget("one", memory=1)).code == 201
    assert api.post(widgets, widget("two", memory="1Gi")).code == 201
    assert api.post(widgets, widget("three", memory=True)).code == 422
