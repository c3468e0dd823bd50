"""Scheduling: pods go where resources, labels and tolerations let them, and wait otherwise."""

from sim_cluster.resources import EVENTS, NODES, PODS


def pod(gpus=0, cpu=None, **spec):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    limits |= {"cpu": cpu} if cpu else {}
    container = {"name": "c", "image": "x", "resources": {"limits": limits}}
    return {"containers": [container], **spec}


async def node_of(world, name):
    found = await world.until(
        lambda: world.get(PODS, name), lambda each: each["spec"].get("nodeName")
    )
    return found["spec"]["nodeName"]


async def refusal(world, name):
    def told(each):
        conditions = each["status"].get("conditions") or ()
        return any(entry.get("reason") == "Unschedulable" for entry in conditions)

    found = await world.until(lambda: world.get(PODS, name), told)
    return found["status"]["conditions"][0]["message"]


async def test_gpus_run_out_and_the_pod_says_so(world):
    await world.add_node("n")
    await world.create(PODS, "first", spec=pod(gpus=8))
    await node_of(world, "first")

    await world.create(PODS, "second", spec=pod(gpus=1))

    assert await refusal(world, "second") == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are "
        "available: 1 No preemption victims found for incoming pod."
    )
    events = await world.until(
        lambda: world.list(EVENTS, field_selector="reason=FailedScheduling"), len
    )
    assert events[0]["type"] == "Warning"
    assert events[0]["reportingComponent"] == "default-scheduler"


async def test_a_waiting_pod_takes_the_room_that_appears(world):
    await world.add_node("n")
    await world.create(PODS, "first", spec=pod(gpus=8))
    first = await node_of(world, "first")
    await world.create(PODS, "second", spec=pod(gpus=8))
    await refusal(world, "second")

    await world.client.delete(PODS, world.namespace, "first")

    assert await node_of(world, "second") == first


async def test_a_new_node_is_used_at_once(world):
    await world.create(PODS, "p", spec=pod(gpus=1))
    await refusal(world, "p")

    name = await world.add_node("late")

    assert await node_of(world, "p") == name


async def test_a_node_selector_and_an_affinity_are_obeyed(world):
    await world.add_node("a100", labels={"gpu": "A100"})
    wanted = await world.add_node("h100", labels={"gpu": "H100"})
    term = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["H100"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    await world.create(PODS, "selector", spec=pod(nodeSelector={"gpu": "H100"}))
    await world.create(PODS, "affinity", spec=pod(affinity={"nodeAffinity": required}))

    assert await node_of(world, "selector") == wanted
    assert await node_of(world, "affinity") == wanted


async def test_a_taint_keeps_pods_out_that_do_not_tolerate_it(world):
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    name = await world.add_node("n", taints=[taint])

    await world.create(PODS, "no", spec=pod())
    await world.create(PODS, "yes", spec=pod(tolerations=[{"key": "gpu", "operator": "Exists"}]))

    assert await node_of(world, "yes") == name
    assert "1 node(s) had untolerated taint(s)" in await refusal(world, "no")


async def test_a_cordoned_node_takes_nobody(world):
    name = await world.add_node("n")
    await world.client.patch(NODES, None, name, {"spec": {"unschedulable": True}})

    await world.create(PODS, "p", spec=pod())

    assert "1 node(s) were unschedulable" in await refusal(world, "p")
    await world.client.patch(NODES, None, name, {"spec": {"unschedulable": None}})
    assert await node_of(world, "p") == name


async def test_pods_spread_over_empty_nodes(world):
    names = {await world.add_node("one"), await world.add_node("two")}

    await world.create(PODS, "first", spec=pod(gpus=4, cpu="40"))
    first = await node_of(world, "first")
    await world.create(PODS, "second", spec=pod(gpus=4, cpu="40"))

    assert {first, await node_of(world, "second")} == names


async def test_every_gpu_is_used_and_none_twice(world):
    await world.add_node("n")

    for number in range(12):
        await world.create(PODS, f"p{number}", spec=pod(gpus=1))

    async def placed():
        return [each for each in await world.list(PODS) if each["spec"].get("nodeName")]

    await world.until(placed, lambda found: len(found) == 8)
    await refusal(world, (await waiting(world))[0])
    assert len(await waiting(world)) == 4


async def waiting(world):
    items = await world.list(PODS)
    return [each["metadata"]["name"] for each in items if not each["spec"].get("nodeName")]
