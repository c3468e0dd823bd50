"""Small parts of the memory API on their own."""

import uuid

import pytest

from sim_cluster.api.builtin.ages import duration_text
from sim_cluster.api.errors import Json
from sim_cluster.api.json_path import values_at
from sim_cluster.api.objects import new_uid
from sim_cluster.api.patches import field_sets
from sim_cluster.api.patches.merge_patch import apply_merge_patch
from sim_cluster.api.routes import parse
from sim_cluster.api.schema import cel
from sim_cluster.api.schema.cel_library import environment
from sim_cluster.api.schema.defaulting import apply_defaults
from sim_cluster.api.schema.formats import format_error
from sim_cluster.api.schema.pruning import duplicate_fields
from sim_cluster.api.schema.structural import custom_node
from sim_cluster.api.selectors import matches_labels


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (601, "10m"), (7200, "120m"),
     (3 * 3600 + 60, "3h1m"), (9 * 3600, "9h"), (50 * 3600, "2d2h"), (30 * 86400, "30d")],
)  # fmt: skip
def test_ages_are_short(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".spec.replicas", [3], id="a field"),
        pytest.param(".items[1].name", ["b"], id="an index"),
        pytest.param(".items[*].name", ["a", "b"], id="all items"),
        pytest.param('.items[?(@.name=="b")].on', ["yes"], id="a filter"),
        pytest.param(".metadata.annotations.a\\.b/c", ["x"], id="a name with a dot"),
        pytest.param(".none.at.all", [], id="nothing"),
    ],
)
def test_printer_columns_find_their_values(path: str, expected: list[object]) -> None:
    obj = {
        "spec": {"replicas": 3},
        "items": [{"name": "a"}, {"name": "b", "on": "yes"}],
        "metadata": {"annotations": {"a.b/c": "x"}},
    }

    assert values_at(obj, path) == expected


def test_fields_survive_their_wire_form() -> None:
    fields = frozenset({("f:a",), ("f:a", "f:b"), ("f:l", 'k:{"name":"x"}', "f:v")})

    assert field_sets.from_wire(field_sets.to_wire(fields)) == fields


def test_a_field_is_shown_as_a_path() -> None:
    field = ("f:spec", "f:containers", 'k:{"name":"app"}', "f:image")

    assert field_sets.shown(field) == '.spec.containers[name="app"].image'


def test_a_merge_patch_leaves_what_it_was_given_alone() -> None:
    document = {"a": {"b": 1}}

    assert apply_merge_patch(document, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert document == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param('{"a":1,"b":{"c":2}}', [], id="none"),
        pytest.param('{"a":1,"a":2}', ["a"], id="at the top"),
        pytest.param('{"l":[{"x":1,"x":1}]}', ["l[0].x"], id="in a list"),
        pytest.param('{"a":"\\u0022","a":"y"}', ["a"], id="beside an escape"),
    ],
)
def test_duplicate_fields_are_found(body: str, expected: list[str]) -> None:
    import json

    assert duplicate_fields(body.encode(), json.loads(body)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quantity('2Gi').isGreaterThan(quantity('1500M'))", True),
        ("quantity('500m').compareTo(quantity('0.5')) == 0", True),
        ("isQuantity('abc')", False),
        ("duration('1h') > duration('59m')", True),
        ("'a,b'.split(',').size() == 2", True),
        ("'abc'.matches('^a') && 'abc'.startsWith('ab')", True),
        ("[1, 2, 3].isSorted() && [1, 2].sum() == 3 && [1, 2].max() == 2", True),
        ("'v12'.find('[0-9]+') == '12'", True),
    ],
)
def test_rules_have_the_functions_of_kubernetes(expression: str, *, expected: bool) -> None:
    assert environment().compile(expression).eval(data={}).plain_value() is expected


@pytest.mark.parametrize(
    ("value", "name", "is_wrong"),
    [("2026-01-01T00:00:00Z", "date-time", False), ("yesterday", "date-time", True),
     ("10.0.0.1", "ipv4", False), ("10.0.0.300", "ipv4", True), ("x", "unheard-of", False)],
)  # fmt: skip
def test_formats_are_checked(value: str, name: str, *, is_wrong: bool) -> None:
    assert format_error(value, name) is is_wrong


def test_selectors_of_objects_select_labels() -> None:
    selector = {
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["2", "3"]},
            {"key": "c", "operator": "DoesNotExist"},
        ],
    }

    assert matches_labels(selector, {"a": "1", "b": "2"})
    assert not matches_labels(selector, {"a": "1", "b": "2", "c": "x"})
    assert not matches_labels(None, {"a": "1"})


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("", "pods", "", "", "", "list")),
        ("GET", "/api/v1/namespaces/n/pods/p", ("", "pods", "n", "p", "", "get")),
        ("GET", "/api/v1/namespaces/n", ("", "namespaces", "n", "n", "", "get")),
        ("PUT", "/api/v1/namespaces/n/finalize", ("", "namespaces", "n", "n", "finalize",
                                                  "update")),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale",
         ("apps", "deployments", "n", "d", "scale", "patch")),
        ("DELETE", "/apis/apps/v1/namespaces/n/deployments",
         ("apps", "deployments", "n", "", "", "deletecollection")),
    ],
)  # fmt: skip
def test_urls_are_taken_apart(method: str, path: str, expected: tuple[str, ...]) -> None:
    route = parse(method, path, is_watch=False)

    assert route is not None
    found = (route.group, route.plural, route.namespace, route.name, route.subresource, route.verb)
    assert found == expected


def test_identities_are_random_and_unlike() -> None:
    first, second = uuid.UUID(new_uid()), uuid.UUID(new_uid())

    assert first != second
    assert first.version == second.version == 4


def _below(place: Json) -> Json:
    """A schema with one place below a property, a list and a map each."""
    return {
        "type": "object",
        "properties": {
            "one": place,
            "list": {"type": "array", "items": place},
            "map": {"type": "object", "additionalProperties": place},
            "plain": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
    }


def test_defaults_are_found_below_properties_lists_and_maps() -> None:
    place: Json = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}
    obj: Json = {"one": {}, "list": [{}, {"n": 1}], "map": {"a": {}}, "plain": {}}

    apply_defaults(obj, custom_node(_below(place)))

    filled = {"one": {"n": 3}, "list": [{"n": 3}, {"n": 1}], "map": {"a": {"n": 3}}, "plain": {}}
    assert obj == filled


def test_rules_are_found_below_properties_lists_and_maps() -> None:
    place: Json = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}
    obj = {"one": 0, "list": [1, 0], "map": {"a": 0}, "plain": {"x": "y"}}

    errors = cel.evaluate(obj, custom_node(_below(place)))

    assert [error["field"] for error in errors] == ["one", "list[1]", "map[a]"]


def test_a_message_may_read_the_state_before_when_its_rule_does_not() -> None:
    rule = {"rule": "self > 0", "messageExpression": "'was ' + string(oldSelf)"}
    number: Json = {"type": "integer", "x-kubernetes-validations": [rule]}
    schema: Json = {"type": "object", "properties": {"n": number}}

    (error,) = cel.evaluate({"n": 0}, custom_node(schema), {"n": 7})

    assert error["message"].endswith("was 7")
