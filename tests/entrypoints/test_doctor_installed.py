"""`fleetline doctor` about what an administrator installs: definitions and permissions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetline.adapters.manifest import GROUP
from fleetline.entrypoints import live
from fleetline.entrypoints.checks_definitions import KINDS, expected_fields, fields_of
from fleetline.entrypoints.checks_permissions import NEEDS, Need, groups_of
from fleetline.errors import ManifestError
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS
from tests.entrypoints.examining import doctor, of
from tests.entrypoints.world import World

CRDS = Path(__file__).parents[2] / "crds"
NOBODY = "system:serviceaccount:ops:nobody"


async def redefine(world: World, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the schema of the fleets' definition."""
    name = f"servingfleets.{GROUP}"
    whole = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)
    change(whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"])
    await world.client.replace(CUSTOM_RESOURCE_DEFINITIONS, whole)


async def test_a_server_that_does_not_answer_is_one_finding(world: World) -> None:
    world.api.write_kubeconfig(world.kubeconfig)
    text = world.kubeconfig.read_text("utf-8").replace(world.api.url, "http://127.0.0.1:9")
    world.kubeconfig.write_text(text, "utf-8")

    findings, code = await doctor(world)

    assert code == 1
    assert [one["check"] for one in findings] == ["server"]


async def test_a_user_who_is_not_let_in_is_one_finding(world: World) -> None:
    world.api.write_kubeconfig(world.kubeconfig, token="stale")

    findings, code = await doctor(world)

    assert code == 1
    assert "401" in of(findings, "server")["says"]


def test_outside_a_pod_a_kubeconfig_has_to_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ManifestError, match="--kubeconfig must be given"):
        live.kubeconfig_of(None)


def test_the_kubeconfig_is_the_one_that_kubectl_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    context = {"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "team"}}
    named = [{"name": "a", "cluster": {}}], [{"name": "a", "user": {}}]
    whole = {"contexts": [context], "current-context": "a"}
    file.write_text(yaml.safe_dump({**whole, "clusters": named[0], "users": named[1]}), "utf-8")
    monkeypatch.setenv("KUBECONFIG", str(file))

    assert live.kubeconfig_of(None) == file
    assert live.namespace_of(file) == "team"


async def test_an_older_definition_says_which_fields_it_lacks(world: World) -> None:
    await redefine(world, lambda fields: fields["status"]["properties"].pop("decision"))

    findings, code = await doctor(world)

    found = of(findings, "definition", "servingfleets")
    assert code == 1
    assert found["state"] == "failed"
    assert "status.decision" in found["says"]
    assert "crds/" in found["mend"]


async def test_a_newer_definition_is_a_warning(world: World) -> None:
    new = {"type": "string", "description": "Something new."}
    await redefine(world, lambda fields: fields["spec"]["properties"].update(novelty=new))

    findings, code = await doctor(world)

    assert code == 0
    assert "spec.novelty" in of(findings, "definition", "servingfleets")["says"]


async def test_a_missing_definition_fails(world: World) -> None:
    await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, None, f"servingfleets.{GROUP}")

    findings, code = await doctor(world)

    assert code == 1
    assert of(findings, "definition", "servingfleets")["says"] == "it is not installed"


@pytest.mark.parametrize("plural", KINDS)
def test_the_expected_fields_are_those_of_the_definitions(plural: str) -> None:
    definition = yaml.safe_load((CRDS / f"{plural}.yaml").read_text("utf-8"))

    assert expected_fields(plural) == fields_of(definition), "run python operator/docs/reference.py"


async def test_an_account_without_rights_is_told_each_of_them(world: World) -> None:
    await world.add_fleet("chat")

    findings, code = await doctor(world, "--as", NOBODY, "--namespace", "default")

    refused = [one for one in findings if one["check"] == "permission"]
    assert code == 1
    assert len(refused) == len(NEEDS) + 1  # and the scale of the fleet's own target
    assert (
        "may not list: spec.accelerator.name has to be set"
        in of(refused, "permission", "nodes")["says"]
    )
    assert of(refused, "permission", "scale of deployments/chat")["state"] == "failed"


def test_a_service_account_is_asked_about_with_its_groups() -> None:
    assert "system:serviceaccounts:ops" in groups_of(NOBODY)
    assert groups_of("ada") == ["system:authenticated"]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.resource)
def test_the_chart_grants_what_doctor_asks_for(need: Need) -> None:
    template = (CRDS.parent / "charts/fleetline/templates/rbac.yaml").read_text("utf-8")
    rules = template.partition('{{- define "fleetline.subject"')[0].split("- apiGroups: ")[1:]

    def grants(rule: str) -> bool:
        groups, resources, verbs = (
            line.partition("[")[2].partition("]")[0].replace('"', "").split(", ")
            for line in rule.splitlines()[:3]
        )
        return need.group in groups and need.resource in resources and set(need.verbs) <= set(verbs)

    assert any(grants(rule) for rule in rules)
