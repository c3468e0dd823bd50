"""EndpointSlices: the ready pods behind a Service, by the name of its port."""

from typing import Any

import pytest

from sim_cluster.resources import DEPLOYMENTS, ENDPOINT_SLICES, PODS, SERVICES

SPEC: dict[str, Any] = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "a"}},
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "x", "ports": [{"name": "http", "containerPort": 8000}]}
            ]
        },
    },
}
SERVICE = {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}


async def endpoints(world):
    slices = await world.list(ENDPOINT_SLICES, label_selector="kubernetes.io/service-name=a")
    return [each for item in slices for each in item.get("endpoints") or ()]


def ready(found):
    return {each["targetRef"]["name"] for each in found if each["conditions"]["ready"]}


async def test_ready_pods_are_listed_with_their_port(world):
    await world.add_node("n")
    await world.create(SERVICES, "a", spec=SERVICE)

    await world.create(DEPLOYMENTS, "a", spec=SPEC)

    pods = await world.pods(2)
    names = {pod["metadata"]["name"] for pod in pods}
    await world.until(lambda: endpoints(world), lambda found: ready(found) == names)
    slices = await world.list(ENDPOINT_SLICES, label_selector="kubernetes.io/service-name=a")
    ports = [port["port"] for item in slices for port in item.get("ports") or ()]
    assert set(ports) == {8000}


async def test_a_pod_that_is_not_ready_takes_no_requests(world):
    await world.add_node("n")
    await world.create(SERVICES, "a", spec=SERVICE)
    await world.create(DEPLOYMENTS, "a", spec=SPEC)
    pods = await world.pods(2)

    await world.kubelet.set_ready(pods[0], "False")

    await world.until(
        lambda: endpoints(world), lambda found: ready(found) == {pods[1]["metadata"]["name"]}
    )


async def test_a_terminating_pod_still_serves_but_is_not_ready(world):
    await world.add_node("n")
    await world.create(SERVICES, "a", spec=SERVICE)
    await world.create(DEPLOYMENTS, "a", spec=SPEC)
    pods = await world.pods(2)
    world.kubelet.holds_end = True

    name = pods[0]["metadata"]["name"]
    await world.client.delete(PODS, world.namespace, name)

    def is_leaving(found):
        mine = [each["conditions"] for each in found if each["targetRef"]["name"] == name]
        return mine == [{"ready": False, "serving": True, "terminating": True}]

    await world.until(lambda: endpoints(world), is_leaving)


@pytest.mark.parametrize(
    ("address", "kind", "written"),
    [
        pytest.param("10.9.8.7", "IPv4", "10.9.8.7", id="an ordinary address"),
        pytest.param(
            "127.1.2.3",
            "FQDN",
            "127-1-2-3.{namespace}.pod.cluster.local",
            id="a loopback address, which the API server refuses",
        ),
    ],
)
async def test_every_address_can_be_written(world, address, kind, written):
    await world.add_node("n")
    world.kubelet.holds_start = True
    await world.create(SERVICES, "a", spec={**SERVICE, "ports": [{"port": 80}]})
    labels = {"labels": {"app": "a"}}
    await world.create(PODS, "p", metadata=labels, spec=SPEC["template"]["spec"])
    await world.until(lambda: world.get(PODS, "p"), lambda pod: pod["spec"].get("nodeName"))

    await world.kubelet.set_ready(
        {**await world.get(PODS, "p"), "status": {"podIP": address}}, "True"
    )

    slices = await world.until(
        lambda: world.list(ENDPOINT_SLICES),
        lambda found: any(each.get("endpoints") and each["addressType"] == kind for each in found),
    )
    found = [each["addresses"] for item in slices for each in item.get("endpoints") or ()]
    assert found == [[written.format(namespace=world.namespace)]]
