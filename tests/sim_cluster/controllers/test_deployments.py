"""Deployments: pods come, are exchanged without a gap, and go."""

import pytest

from sim_cluster.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS


def spec(replicas=3, image="one", app="a", **more):
    return {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "template": {
            "metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
        **more,
    }


def images(pods):
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


def condition(deployment, kind):
    listed = deployment["status"].get("conditions", ())
    return next((each["status"], each["reason"]) for each in listed if each["type"] == kind)


async def test_a_deployment_gets_its_pods_and_says_so(world):
    await world.add_node("n")

    await world.create(DEPLOYMENTS, "a", spec=spec(3))

    await world.pods(3)
    done = await world.until(
        lambda: world.get(DEPLOYMENTS, "a"), lambda each: each["status"].get("readyReplicas") == 3
    )
    assert done["status"]["updatedReplicas"] == 3
    assert condition(done, "Available") == ("True", "MinimumReplicasAvailable")
    assert condition(done, "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_a_new_template_replaces_every_pod(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(4))
    await world.pods(4)

    await world.patch(DEPLOYMENTS, "a", {"spec": spec(4, image="two")})

    async def running():
        return images(await world.list(PODS))

    await world.until(running, lambda found: found == {"two"})
    await world.pods(4)
    sets = await world.list(REPLICA_SETS)
    assert sorted(each["spec"]["replicas"] for each in sets) == [0, 4]
    revision = "deployment.kubernetes.io/revision"
    assert (await world.get(DEPLOYMENTS, "a"))["metadata"]["annotations"][revision] == "2"


async def test_a_rollout_that_is_stuck_keeps_the_old_pods_available(world):
    await world.add_node("n")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await world.create(DEPLOYMENTS, "a", spec=spec(3, strategy=strategy))
    await world.pods(3)
    world.kubelet.holds_start = True

    await world.patch(DEPLOYMENTS, "a", {"spec": spec(3, image="two")})

    stuck = await world.until(
        lambda: world.get(DEPLOYMENTS, "a"),
        lambda each: (
            each["status"].get("replicas") == 4 and each["status"].get("availableReplicas") == 3
        ),
    )
    assert stuck["status"]["updatedReplicas"] == 1
    assert len([pod for pod in await world.list(PODS) if images([pod]) == {"one"}]) == 3


async def test_recreate_never_runs_two_versions_at_once(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(2, strategy={"type": "Recreate"}))
    await world.pods(2)
    world.kubelet.holds_end = True

    await world.patch(DEPLOYMENTS, "a", {"spec": spec(2, image="two")})

    await world.until(
        lambda: world.list(PODS),
        lambda pods: all(pod["metadata"].get("deletionTimestamp") for pod in pods),
    )
    assert images(await world.list(PODS)) == {"one"}
    world.kubelet.release()
    assert images(await world.pods(2)) == {"two"}


async def test_scale_subresource_changes_the_number_of_pods(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(1))
    await world.pods(1)

    await world.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 5}}, subresource="scale")

    await world.pods(5)


async def test_a_paused_deployment_scales_but_does_not_roll_out(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(2, paused=False))
    await world.pods(2)

    await world.patch(DEPLOYMENTS, "a", {"spec": spec(3, image="two", paused=True)})

    assert images(await world.pods(3)) == {"one"}
    await world.patch(DEPLOYMENTS, "a", {"spec": {"paused": False}})
    await world.until(lambda: world.list(REPLICA_SETS), lambda sets: len(sets) == 2)


async def test_an_undo_makes_the_old_set_the_newest(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(2))
    await world.pods(2)
    await world.patch(DEPLOYMENTS, "a", {"spec": spec(2, image="two")})
    await world.until(
        lambda: world.list(PODS), lambda pods: len(pods) == 2 and images(pods) == {"two"}
    )

    await world.patch(DEPLOYMENTS, "a", {"spec": spec(2, image="one")})

    await world.until(
        lambda: world.list(PODS), lambda pods: len(pods) == 2 and images(pods) == {"one"}
    )
    revision = "deployment.kubernetes.io/revision"
    found = {each["metadata"]["annotations"][revision] for each in await world.list(REPLICA_SETS)}
    assert found == {"2", "3"}


async def test_pods_killed_by_hand_come_back(world):
    await world.add_node("n")
    await world.create(DEPLOYMENTS, "a", spec=spec(2))
    first = await world.pods(2)

    await world.client.delete(PODS, world.namespace, first[0]["metadata"]["name"])

    async def names():
        return {pod["metadata"]["name"] for pod in await world.list(PODS)}

    gone = first[0]["metadata"]["name"]
    await world.until(names, lambda found: len(found) == 2 and gone not in found)


async def test_scaling_is_told_in_events(world):
    await world.add_node("n")

    await world.create(DEPLOYMENTS, "a", spec=spec(2))

    await world.pods(2)
    events = await world.until(
        lambda: world.list(EVENTS, field_selector="reason=ScalingReplicaSet"), len
    )
    assert "Scaled up replica set a-" in events[0]["message"]
    assert "from 0 to 2" in events[0]["message"]


@pytest.mark.parametrize("replicas", [0, 1])
async def test_an_available_deployment_may_be_as_small_as_asked(world, replicas):
    await world.add_node("n")

    await world.create(DEPLOYMENTS, "a", spec=spec(replicas))

    done = await world.until(
        lambda: world.get(DEPLOYMENTS, "a"),
        lambda each: (
            each["status"].get("observedGeneration") == 1
            and each["status"].get("readyReplicas", 0) == replicas
            and each["status"].get("conditions")
        ),
    )
    assert condition(done, "Available") == ("True", "MinimumReplicasAvailable")
