"""The rights that doctor asks about are those that the operator uses: no more, no less."""

from dataclasses import replace

import pytest

from fleetline.entrypoints.checks_permissions import NEEDS, Need
from sim_cluster.resources import Resource
from tests.entrypoints.examining import bad, doctor, of
from tests.entrypoints.world import World

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole")
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding")
VITAL = [need for need in NEEDS if not need.loss]


async def become(world: World, needs: list[Need]) -> None:
    """Write a kubeconfig for a user who may do this and nothing else."""
    rules = [
        {"apiGroups": [need.group], "resources": [need.resource], "verbs": list(need.verbs)}
        for need in needs
    ]
    await world.client.create(ROLES, {"metadata": {"name": "some"}, "rules": rules})
    binding = {
        "metadata": {"name": "some"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "some"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "someone"}],
    }
    await world.client.create(BINDINGS, binding)
    world.api.write_kubeconfig(world.kubeconfig, token=world.api.add_user("someone"))


async def test_the_operator_scales_with_these_rights_alone(world: World) -> None:
    await world.add_fleet("chat", replicas=1, rate_per_s=60.0)
    await become(world, list(NEEDS))

    async with world.operator():

        async def raised() -> bool:
            return await world.replicas("chat") > 1

        await world.until(raised)
        await world.until(lambda: world.writes("servingfleets/status") > 0)
        await world.until(lambda: world.writes("events") > 0)


async def test_with_these_rights_alone_only_the_definitions_stay_unread(world: World) -> None:
    await world.add_fleet("chat", replicas=2, rate_per_s=20.0)
    await become(world, list(NEEDS))

    findings, code = await doctor(world)

    assert code == 0
    assert {one["check"] for one in bad(findings)} == {"definition", "operator"}
    assert "is served" in of(findings, "definition", "servingfleets")["says"]


@pytest.mark.parametrize("lacking", NEEDS, ids=lambda need: need.resource)
async def test_one_right_less_is_one_finding_of_its_kind(world: World, lacking: Need) -> None:
    others = [need for need in NEEDS if need is not lacking]
    await become(world, others)

    findings, code = await doctor(world, prometheus=False)

    (found,) = (one for one in bad(findings) if one["check"] == "permission")
    assert found["subject"].startswith(lacking.resource)
    assert (found["state"] == "failed") == (lacking in VITAL) == (code == 1)


async def test_one_verb_less_names_the_verb(world: World) -> None:
    first, *others = NEEDS
    await become(world, [replace(first, verbs=("get", "list")), *others])

    findings, _ = await doctor(world, prometheus=False)

    assert of(bad(findings), "permission")["says"] == "may not watch"
