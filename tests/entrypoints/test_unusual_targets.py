"""Kinds that the operator has never heard of are scaled through their scale subresource."""

from typing import Any

from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Resource
from tests.entrypoints.fake_prometheus import Load
from tests.entrypoints.world import FLEETS, READY, World, fleet

GROUPS = Resource("example.dev", "v1", "servinggroups", "ServingGroup")


def definition() -> dict[str, Any]:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"kind": "ServingGroup", "plural": "servinggroups", "singular": "servinggroup"}
    return {
        "metadata": {"name": "servinggroups.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {**names, "listKind": "ServingGroupList"},
            "versions": [version],
        },
    }


async def test_a_group_of_pods_is_found_by_its_selector_and_scaled(world: World) -> None:
    await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    group = {"metadata": {"name": "moe", "namespace": "default"}, "spec": {"replicas": 1}}

    async def is_served() -> bool:
        return await world.client.find(GROUPS, "default", "moe") is not None

    await world.client.create(GROUPS, group)
    await world.until(is_served)
    selector = {"status": {"replicas": 1, "selector": "app=moe,role=leader"}}
    await world.client.patch(GROUPS, "default", "moe", selector, subresource="status")
    pod = {
        "metadata": {
            "name": "moe-0",
            "namespace": "default",
            "labels": {"app": "moe", "role": "leader"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "moe-leaders",
                    "uid": "1",
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.32"}]},
    }
    await world.client.create(PODS, pod)
    await world.client.patch(PODS, "default", "moe-0", {"status": READY}, subresource="status")
    world.prometheus.loads.append(Load("default", lambda: ["moe-0"], rate_per_s=100.0))
    reference = {"apiVersion": "example.dev/v1", "kind": "ServingGroup", "name": "moe"}
    await world.client.create(
        FLEETS,
        fleet("moe", scaleTargetRef=reference, model={"name": "llama-3.1-8b"}),
    )

    async with world.operator():

        async def raised() -> bool:
            found = await world.client.get(GROUPS, "default", "moe")
            return int(found["spec"]["replicas"]) > 1

        await world.until(raised)
        status = await world.status("moe")

    assert status["readyReplicas"] == 1
