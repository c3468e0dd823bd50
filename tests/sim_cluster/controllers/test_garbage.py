"""Deletion: what belongs to a deleted object goes with it, before it, or stays, as asked."""

from sim_cluster.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS

SPEC = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "a"}},
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "one"}]},
    },
}


def owned_by(*owners, blocking=False):
    return {
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": blocking,
            }
            for owner in owners
        ]
    }


async def delete(world, resource, name, policy="Background"):
    options = {"propagationPolicy": policy}
    await world.client.delete(resource, world.namespace, name, options=options)


async def test_sets_and_pods_go_with_their_deployment(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=SPEC)
    await world.pods(2)

    await delete(world, DEPLOYMENTS, "a")

    await world.until(lambda: world.list(PODS), lambda pods: not pods)
    assert await world.list(REPLICA_SETS) == []


async def test_in_the_foreground_the_owner_goes_last(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=SPEC)
    await world.pods(2)
    world.kubelet.holds_end = True

    await delete(world, DEPLOYMENTS, "a", "Foreground")

    await world.until(
        lambda: world.list(PODS),
        lambda pods: all(pod["metadata"].get("deletionTimestamp") for pod in pods),
    )
    owner = await world.get(DEPLOYMENTS, "a")
    assert owner["metadata"]["finalizers"] == ["foregroundDeletion"]
    world.kubelet.release()
    await world.until(lambda: world.find(DEPLOYMENTS, "a"), lambda each: each is None)
    assert await world.list(PODS) == []


async def test_orphans_stay_and_forget_their_owner(world):
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(owner))

    await delete(world, CONFIG_MAPS, "owner", "Orphan")

    await world.until(lambda: world.find(CONFIG_MAPS, "owner"), lambda each: each is None)
    child = await world.get(CONFIG_MAPS, "child")
    assert "ownerReferences" not in child["metadata"]


async def test_with_two_owners_one_is_enough_to_stay(world):
    first = await world.create(CONFIG_MAPS, "first")
    second = await world.create(CONFIG_MAPS, "second")
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(first, second))

    await delete(world, CONFIG_MAPS, "first")

    child = await world.until(
        lambda: world.get(CONFIG_MAPS, "child"),
        lambda each: len(each["metadata"]["ownerReferences"]) == 1,
    )
    assert child["metadata"]["ownerReferences"][0]["name"] == "second"
    await delete(world, CONFIG_MAPS, "second")
    await world.until(lambda: world.find(CONFIG_MAPS, "child"), lambda each: each is None)


async def test_an_owner_that_never_was_leaves_nothing_to_stay_for(world):
    absent = {"metadata": {"name": "absent", "uid": "00000000-0000-4000-8000-000000000000"}}

    await world.create(CONFIG_MAPS, "child", metadata=owned_by(absent))

    await world.until(lambda: world.find(CONFIG_MAPS, "child"), lambda each: each is None)


async def test_a_chain_of_owners_goes_all_the_way(world):
    grandparent = await world.create(CONFIG_MAPS, "grandparent")
    parent = await world.create(CONFIG_MAPS, "parent", metadata=owned_by(grandparent))
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(parent))

    await delete(world, CONFIG_MAPS, "grandparent")

    await world.until(lambda: world.find(CONFIG_MAPS, "child"), lambda each: each is None)


async def test_a_namespace_goes_with_everything_inside(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=SPEC)
    await world.create(CONFIG_MAPS, "c")
    await world.pods(2)

    await world.client.delete(NAMESPACES, None, world.namespace)

    await world.until(
        lambda: world.client.find(NAMESPACES, None, world.namespace), lambda each: each is None
    )
    assert await world.list(PODS) == []
    assert await world.list(CONFIG_MAPS) == []


async def test_a_namespace_waits_for_finalizers_inside(world):
    await world.create(CONFIG_MAPS, "c", metadata={"finalizers": ["example.com/hold"]})

    await world.client.delete(NAMESPACES, None, world.namespace)

    held = await world.until(
        lambda: world.find(CONFIG_MAPS, "c"), lambda each: each["metadata"].get("deletionTimestamp")
    )
    assert held is not None
    namespace = await world.client.get(NAMESPACES, None, world.namespace)
    assert namespace["status"]["phase"] == "Terminating"
    await world.patch(CONFIG_MAPS, "c", {"metadata": {"finalizers": None}})
    await world.until(
        lambda: world.client.find(NAMESPACES, None, world.namespace), lambda each: each is None
    )
