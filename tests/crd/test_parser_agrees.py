"""The operator's parser refuses what the API server refuses: old objects reach it too."""

import re

import pytest

from fleetline.adapters import manifest
from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.profiles import SHARES, TIMES, with_profiles
from fleetline.errors import ManifestError
from tests.crd import definitions as crd
from tests.crd.wrong_shapes import PROFILES, SHAPES
from tests.crd.wrong_values import ARCHITECTURE, FLEET, WRONG


@pytest.mark.parametrize(
    ("path", "value"),
    [pytest.param(*wrong.values[:2], id=str(wrong.id)) for wrong in WRONG],
)
def test_the_operator_refuses_it_too_for_objects_of_an_older_definition(path, value):
    with pytest.raises(ManifestError, match=" must ") as refusal:
        manifest.parse(crd.changed(FLEET, path, value))

    assert str(refusal.value).startswith(f"spec.{path.split('.')[0].split('[')[0]}")


RULED = [
    pytest.param(*wrong.values, id=str(wrong.id))
    for wrong in WRONG
    if any(" must be " in part for part in wrong.values[2])
    and all(part.startswith(("spec.", "got ")) for part in wrong.values[2])
]


@pytest.mark.parametrize(("path", "value", "said"), RULED)
def test_operator_and_definition_say_the_same_about_a_broken_rule(path, value, said):
    with pytest.raises(ManifestError) as refusal:
        manifest.parse(crd.changed(FLEET, path, value))

    words = re.sub(r"\[\d+\]", "[]", str(refusal.value))
    assert [part for part in said if re.sub(r"\[\d+\]", "[]", part) not in words] == []


RULES = ("must be complete", "must be more than corrects")
"""What the definition's own rules say, in words that the operator repeats."""


@pytest.mark.parametrize(("profile", "path", "value", "said"), PROFILES)
def test_the_operator_refuses_a_wrong_accelerator_too(profile, path, value, said):
    _, problems = with_profiles(load_catalog(), [crd.changed(profile, path, value)])

    assert len(problems) == 1
    assert f"spec{'' if value is None else f'.{path}'}" in problems[0]
    assert said in problems[0] or said not in RULES


@pytest.mark.parametrize("field", [*SHARES, *TIMES])
@pytest.mark.parametrize("value", [-1, 0, 101, 1_000_001, 0.5, "50", True])
def test_efficiencies_have_the_bounds_of_the_definition(field, value):
    spec = crd.schema("acceleratorprofiles")["properties"]["spec"]
    bounds = spec["properties"]["efficiency"]["properties"][field]
    least, most = bounds["minimum"], bounds["maximum"]
    allowed = type(value) is int and least <= value <= most

    profile = crd.changed(PROFILES[0].values[0], "efficiency", {field: value})
    _, problems = with_profiles(load_catalog(), [profile])

    assert allowed is (problems == ())


@pytest.mark.parametrize(("fields", "field", "said"), SHAPES)
def test_the_operator_refuses_a_wrong_architecture_too(fields, field, said):
    model = {"architecture": crd.drop_unset({**ARCHITECTURE, **fields})}

    with pytest.raises(ManifestError, match=rf"spec\.model\.architecture\.{field} must "):
        manifest.parse(crd.changed(FLEET, "model", model))
