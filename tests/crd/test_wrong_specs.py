"""
Wrong specs are refused by the API server itself, with a message that names the field.

The same table runs against every backend: what the in-memory API says, the real one says too.
Messages are compared by their telling part; wording around it belongs to the API server.
"""

import pytest

from tests.crd import definitions as crd
from tests.crd.conftest import Kubectl
from tests.crd.wrong_shapes import PROFILES, SHAPES, STRICT, YAML_TRAPS
from tests.crd.wrong_values import ARCHITECTURE, FLEET, WRONG


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_where_it_stands(kubectl: Kubectl, path, value, said):
    code, output = kubectl.create(crd.changed(FLEET, path, value))

    assert code == 1
    assert [part for part in said if part not in output] == [], output[:2000]


@pytest.mark.parametrize(("fields", "field", "said"), SHAPES)
def test_a_wrong_architecture_is_refused(kubectl: Kubectl, fields, field, said):
    model = {"architecture": crd.drop_unset({**ARCHITECTURE, **fields})}

    code, output = kubectl.create(crd.changed(FLEET, "model", model))

    assert code == 1
    assert f"spec.model.architecture.{field}" in output
    assert said in output


def test_a_right_architecture_is_accepted(kubectl: Kubectl):
    experts = {"experts": 8, "expertsPerToken": 2, "expertParameters": 7 * 10**9}
    window = {"windowTokens": 4096, "windowKVValuesPerToken": 1024}
    model = {"architecture": {**ARCHITECTURE, **experts, **window}}

    code, output = kubectl.create(crd.changed(FLEET, "model", model))

    assert code == 0, output


@pytest.mark.parametrize(("path", "value"), STRICT)
def test_an_unknown_field_is_refused_by_name(kubectl: Kubectl, path, value):
    code, output = kubectl.create(crd.changed(FLEET, path, value))

    assert code == 1
    assert f'unknown field "spec.{path}"' in output


@pytest.mark.parametrize(("profile", "path", "value", "said"), PROFILES)
def test_a_wrong_accelerator_is_refused(kubectl: Kubectl, profile, path, value, said):
    code, output = kubectl.create(crd.changed(profile, path, value))

    assert code == 1
    assert said in output


@pytest.mark.parametrize(("right", "wrong", "field"), YAML_TRAPS)
def test_what_yaml_makes_of_a_word_is_refused_where_it_stands(
    kubectl: Kubectl, right, wrong, field
):
    text = (crd.CRDS / "examples" / "chat.yaml").read_text("utf-8")
    assert text.count(right) >= 1

    code, output = kubectl.create(text.replace(right, wrong))

    assert code == 1
    assert field in output or "json: unsupported value: +Inf" in output


def test_nulls_count_as_absent_and_are_defaulted(kubectl: Kubectl):
    spec = {**FLEET["spec"], "mode": None, "model": None, "engine": {"maxSequences": None}}

    code, output = kubectl.create({**FLEET, "spec": spec})

    assert code == 0, output


def test_a_fleet_without_a_spec_is_refused(kubectl: Kubectl):
    code, output = kubectl.create({**FLEET, "spec": None})

    assert code == 1
    assert "spec: Required value" in output
