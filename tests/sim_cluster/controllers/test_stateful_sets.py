"""StatefulSets: names that last, and an order."""

from sim_cluster.pods import is_terminating
from sim_cluster.resources import PODS, STATEFUL_SETS


def spec(replicas=3, image="one", **more):
    return {
        "replicas": replicas,
        "serviceName": "a",
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
        **more,
    }


def names(pods):
    return [each["metadata"]["name"] for each in pods]


async def test_pods_are_numbered_from_zero(world):
    await world.add_node("n")

    await world.create(STATEFUL_SETS, "a", spec=spec(3))

    assert names(await world.pods(3)) == ["a-0", "a-1", "a-2"]
    first = await world.get(PODS, "a-0")
    assert first["spec"]["hostname"] == "a-0"
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


async def test_the_next_pod_waits_until_the_one_before_is_ready(world):
    await world.add_node("n")
    world.kubelet.holds_start = True

    await world.create(STATEFUL_SETS, "a", spec=spec(2))

    await world.until(lambda: world.get(STATEFUL_SETS, "a"), lambda a: a["status"].get("replicas"))
    assert names(await world.list(PODS)) == ["a-0"]
    world.kubelet.release()
    await world.pods(2)


async def test_in_parallel_nobody_waits(world):
    await world.add_node("n")
    world.kubelet.holds_start = True

    await world.create(STATEFUL_SETS, "a", spec=spec(3, podManagementPolicy="Parallel"))

    await world.until(lambda: world.list(PODS), lambda pods: len(pods) == 3)


async def test_scale_down_takes_the_last_first(world):
    await world.add_node("n")
    await world.create(STATEFUL_SETS, "a", spec=spec(3))
    await world.pods(3)
    world.kubelet.holds_end = True

    await world.patch(STATEFUL_SETS, "a", {"spec": {"replicas": 1}}, subresource="scale")

    ending = await world.until(
        lambda: world.list(PODS), lambda pods: any(map(is_terminating, pods))
    )
    assert names(filter(is_terminating, ending)) == ["a-2"]
    world.kubelet.release()
    assert names(await world.pods(1)) == ["a-0"]


async def test_an_update_goes_from_the_end_to_the_partition(world):
    await world.add_node("n")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    await world.create(STATEFUL_SETS, "a", spec=spec(3, updateStrategy=strategy))
    await world.pods(3)

    await world.patch(STATEFUL_SETS, "a", {"spec": spec(3, image="two", updateStrategy=strategy)})

    async def images():
        return [each["spec"]["containers"][0]["image"] for each in await world.list(PODS)]

    await world.until(images, lambda found: found == ["one", "two", "two"])
    done = await world.until(
        lambda: world.get(STATEFUL_SETS, "a"),
        lambda a: a["status"].get("updatedReplicas") == 2 and a["status"]["readyReplicas"] == 3,
    )
    assert done["status"]["currentRevision"] != done["status"]["updateRevision"]


async def test_a_finished_update_is_the_current_revision(world):
    await world.add_node("n")
    await world.create(STATEFUL_SETS, "a", spec=spec(2))
    await world.pods(2)

    await world.patch(STATEFUL_SETS, "a", {"spec": spec(2, image="two")})

    await world.until(
        lambda: world.get(STATEFUL_SETS, "a"),
        lambda a: (
            a["status"].get("observedGeneration") == 2
            and a["status"]["currentRevision"] == a["status"]["updateRevision"]
            and a["status"].get("readyReplicas") == 2
        ),
    )


async def test_a_deleted_pod_comes_back_under_its_name(world):
    await world.add_node("n")
    await world.create(STATEFUL_SETS, "a", spec=spec(2))
    before = await world.pods(2)

    await world.client.delete(PODS, world.namespace, "a-0")

    old = before[0]["metadata"]["uid"]
    await world.until(
        lambda: world.find(PODS, "a-0"),
        lambda each: each is not None and each["metadata"]["uid"] != old,
    )
    assert names(await world.pods(2)) == ["a-0", "a-1"]
