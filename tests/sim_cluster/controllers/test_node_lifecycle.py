"""Nodes that fall silent or vanish, with the times of a real cluster made short."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest

from sim_cluster.controllers.node_lifecycle import NodeLifecycle
from sim_cluster.controllers.view import View
from sim_cluster.controllers.worker import work
from sim_cluster.resources import LEASES, NAMESPACES, NODES, PODS
from tests.sim_cluster.controllers.conftest import BACKEND, CONTROLLERS

pytestmark = pytest.mark.skipif(
    (BACKEND, CONTROLLERS) != ("memory", "ours"), reason="the real times are minutes"
)
SPEC = {"containers": [{"name": "c", "image": "x"}]}


@pytest.fixture
async def lifecycle(world):
    """A controller with grace 1 s, eviction after 1 s more, and 0.5 s for vanished nodes."""
    view = View(world.client)
    controller = NodeLifecycle(view, grace_s=1.0, eviction_s=1.0, vanished_s=0.5)
    tasks = [asyncio.create_task(view.run())]
    await asyncio.sleep(0)
    await view.synced()
    tasks.append(asyncio.create_task(work(controller, workers=1)))
    yield controller
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def renew(world, name):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"renewTime": now}}
    with contextlib.suppress(Exception):
        await world.client.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
    if await world.client.find(LEASES, "kube-node-lease", name) is None:
        await world.client.create(LEASES, body)
    else:
        await world.client.patch(LEASES, "kube-node-lease", name, {"spec": {"renewTime": now}})


def ready(item):
    return next(each["status"] for each in item["status"]["conditions"] if each["type"] == "Ready")


async def test_a_silent_node_and_its_pods_are_not_ready(world, lifecycle):
    name = await world.add_node("n")
    await renew(world, name)
    await world.create(PODS, "p", spec=SPEC, metadata={"labels": {"app": "a"}})

    await world.pods(1)

    await world.until(lambda: world.client.get(NODES, None, name), lambda n: ready(n) == "Unknown")
    await world.until(lambda: world.get(PODS, "p"), lambda pod: ready(pod) == "False")
    taints = (await world.client.get(NODES, None, name))["spec"]["taints"]
    assert {each["effect"] for each in taints} == {"NoSchedule", "NoExecute"}


async def test_pods_of_a_node_that_stays_silent_are_deleted(world, lifecycle):
    name = await world.add_node("n")
    await renew(world, name)
    await world.create(PODS, "p", spec=SPEC)

    await world.until(lambda: world.find(PODS, "p"), lambda pod: pod is None)

    assert await world.client.find(NODES, None, name) is not None


async def test_pods_of_a_vanished_node_are_removed(world, lifecycle):
    name = await world.add_node("n")
    await world.create(PODS, "p", spec=SPEC, metadata={"labels": {"app": "a"}})
    await world.pods(1)
    world.kubelet.holds_end = True

    await world.client.delete(NODES, None, name)

    await world.until(lambda: world.find(PODS, "p"), lambda pod: pod is None)
