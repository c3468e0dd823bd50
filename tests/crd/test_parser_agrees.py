"""The operator's parser refuses what the API server refuses: old objects reach it too."""

import pytest

from fleetline.adapters import manifest
from fleetline.errors import ManifestError
from tests.crd import definitions as crd
from tests.crd.wrong_shapes import SHAPES
from tests.crd.wrong_values import ARCHITECTURE, FLEET, TARGET, WRONG

LENIENT = {"no policies"}
"""What the operator reads leniently: no policies are the default ones."""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(*wrong.values[:2], id=str(wrong.id))
        for wrong in WRONG
        if wrong.id not in LENIENT
    ],
)
def test_the_operator_refuses_it_too_for_objects_of_an_older_definition(path, value):
    with pytest.raises(ManifestError, match=" must ") as refusal:
        manifest.parse(crd.changed(FLEET, path, value))

    assert str(refusal.value).startswith(f"spec.{path.split('.')[0].split('[')[0]}")


RULED = [
    pytest.param(*wrong.values, id=str(wrong.id))
    for wrong in WRONG
    if wrong.values[0] != TARGET
    and any(" must be " in part for part in wrong.values[2])
    and all(part.startswith(("spec.", "got ")) for part in wrong.values[2])
]


@pytest.mark.parametrize(("path", "value", "said"), RULED)
def test_operator_and_definition_say_the_same_about_a_broken_rule(path, value, said):
    with pytest.raises(ManifestError) as refusal:
        manifest.parse(crd.changed(FLEET, path, value))

    assert [part for part in said if part not in str(refusal.value)] == []


@pytest.mark.parametrize(("fields", "field", "said"), SHAPES)
def test_the_operator_refuses_a_wrong_architecture_too(fields, field, said):
    model = {"architecture": crd.drop_unset({**ARCHITECTURE, **fields})}

    with pytest.raises(ManifestError, match=rf"spec\.model\.architecture\.{field} must "):
        manifest.parse(crd.changed(FLEET, "model", model))
