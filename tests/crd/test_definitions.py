"""What holds for the definitions as files: described, bounded, structural, priced in CEL."""

import runpy

import pytest
import yaml
from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from tests.crd import definitions as crd

FIELDS = [
    (f"{plural}{path}", path, node)
    for plural in crd.DEFINITIONS
    for path, node in crd.nodes(crd.schema(plural))
]
RULES = [
    pytest.param(rule, id=f"{plural}{path}[{index}]")
    for plural in crd.DEFINITIONS
    for path, node in crd.nodes(crd.schema(plural))
    for index, rule in enumerate(node.get("x-kubernetes-validations", []))
]
GIVEN_BY_THE_API_SERVER = {".apiVersion", ".kind", ".metadata"}
"""Fields that every object has; the API server bounds them."""


def test_every_field_says_what_it_is():
    silent = [
        name
        for name, path, node in FIELDS
        if path != ".metadata" and len(node.get("description", "")) < 10
    ]

    assert not silent


def test_nothing_is_preserved_unknown_and_nothing_is_a_float():
    open_ended = {"x-kubernetes-preserve-unknown-fields", "additionalProperties"}

    assert not [name for name, _, node in FIELDS if open_ended & node.keys()]
    assert not [name for name, _, node in FIELDS if node["type"] == "number"]


def test_every_field_is_bounded():
    assert not [name for name, path, node in FIELDS if not _is_bounded(path, node)]


def test_every_list_says_how_it_merges():
    lists = [(name, node) for name, _, node in FIELDS if node["type"] == "array"]

    assert not [name for name, node in lists if "x-kubernetes-list-type" not in node]


def test_keys_of_lists_are_required_or_have_a_default():
    assert not [name for name, _, node in FIELDS if _keys(node) - _always_there(node)]


def test_integers_survive_every_client():
    integers = [(name, node) for name, _, node in FIELDS if node["type"] == "integer"]

    assert not [name for name, node in integers if node.get("maximum", 0) >= 2**53]
    assert not [name for name, node in integers if node["format"] not in {"int32", "int64"}]


@pytest.mark.parametrize("rule", RULES)
def test_rules_compile_and_read_where_must_be(rule):
    environment = cel.NewEnv(
        variables={"self": cel.Type.DYN}, extensions=[ext_strings.ExtStrings()]
    )

    environment.compile(rule["rule"])
    environment.compile(rule.get("messageExpression", '"none"'))

    assert rule["message"].startswith("spec")
    assert " must be " in rule["message"]
    assert rule["message"].split(" must be ")[0] in rule.get("messageExpression", rule["message"])


@pytest.mark.parametrize("rule", RULES)
def test_messages_do_not_convert_numbers_in_a_way_that_has_no_bound(rule):
    # The API server estimates string(int) as unbounded and refuses the whole definition;
    # format() is within the budget (ValidateCustomResourceDefinition, Kubernetes 1.37).
    assert "string(" not in rule.get("messageExpression", "")


def test_there_is_no_scale_subresource_to_invite_another_autoscaler():
    version = crd.definition("servingfleets")["spec"]["versions"][0]

    assert version["subresources"] == {"status": {}}


def test_columns_answer_why_this_number():
    version = crd.definition("servingfleets")["spec"]["versions"][0]
    columns = {c["name"].upper(): c.get("priority", 0) for c in version["additionalPrinterColumns"]}

    assert [name for name, priority in columns.items() if priority == 0] == [
        *("TARGET", "MIN", "MAX", "CURRENT", "DESIRED", "READY", "REASON", "AGE"),
    ]
    assert [name for name, priority in columns.items() if priority] == [
        *("OBJECTIVE", "CEILING", "LIMIT", "METRICS", "LAST-SCALE"),
    ]
    assert "number" not in {c["type"] for c in version["additionalPrinterColumns"]}


def test_the_page_of_fields_is_what_the_script_writes():
    script = runpy.run_path(str(crd.CRDS / "reference.py"))

    assert script["README"].read_text("utf-8") == script["reference"]()


def test_the_example_in_full_shows_every_field_of_the_spec():
    spec = crd.schema("servingfleets")["properties"]["spec"]
    given = _paths(crd.example("chat")[0]["spec"], "")
    not_shown = {
        path
        for path, _ in crd.nodes(spec)
        if path.lstrip(".") and path not in given and not path.startswith(".model.architecture")
    }

    assert not_shown == set()


def test_every_example_names_its_schema_version():
    documents = [d for path in crd.EXAMPLES for d in yaml.safe_load_all(path.read_text("utf-8"))]

    assert {document["apiVersion"] for document in documents} == {"fleetline.dev/v1alpha1"}


def _paths(value, path):
    if isinstance(value, dict):
        inner = [_paths(field, f"{path}.{name}") for name, field in value.items()]
    elif isinstance(value, list):
        inner = [_paths(item, f"{path}[]") for item in value]
    else:
        inner = []
    return {path}.union(*inner)


def _is_bounded(path, node):
    needed = {
        "string": {"maxLength"},
        "integer": {"minimum", "maximum"} if path.startswith(".spec") else {"minimum"},
        "array": {"maxItems"},
    }.get(node["type"], set())
    is_closed = "enum" in node or node.get("format") == "date-time"
    return is_closed or path in GIVEN_BY_THE_API_SERVER or needed <= node.keys()


def _keys(node):
    return set(node.get("x-kubernetes-list-map-keys", ()))


def _always_there(node):
    items = node.get("items", {})
    defaulted = {name for name, field in items.get("properties", {}).items() if "default" in field}
    return {*items.get("required", ()), *defaulted}
