"""Accelerator hours, from a pod's binding to the end of its drain."""

import pytest

from sim_cluster.nodes.engine_spec import accelerators_of
from sim_cluster.nodes.pod_status import SimulatedPod, Stage
from sim_cluster.nodes.usage import Usage


class Clock:
    """Time by hand."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now_s(self) -> float:
        return self.time_s


def a_pod(name: str, *, namespace: str = "default", accelerators: int = 1) -> SimulatedPod:
    return SimulatedPod(
        key=(namespace, name),
        uid=name,
        node="node",
        ip="127.1.0.1",
        stage=Stage.STARTING,
        accelerators=accelerators,
    )


def test_a_pod_counts_from_its_binding_until_it_has_gone() -> None:
    clock = Clock()
    usage = Usage(clock)  # type: ignore[arg-type]
    pod = a_pod("chat-0", accelerators=4)

    clock.time_s = 100.0
    usage.begin(pod)
    clock.time_s = 1900.0
    usage.end(pod)
    clock.time_s = 9000.0

    # 4 accelerators x 1,800 s
    assert usage.accelerator_hours() == pytest.approx(2.0)
    assert usage.accelerators == 0


def test_a_pod_that_is_there_counts_until_now() -> None:
    clock = Clock()
    usage = Usage(clock)  # type: ignore[arg-type]

    usage.begin(a_pod("chat-0"))
    usage.begin(a_pod("code-0", namespace="code"))
    clock.time_s = 3600.0

    assert usage.accelerator_hours() == pytest.approx(2.0)
    assert usage.accelerator_hours(namespace="code", since_s=1800.0) == pytest.approx(0.5)


def test_accelerators_are_what_the_containers_may_use() -> None:
    limits = {"nvidia.com/gpu": "4", "memory": "10Gi"}
    containers = [{"name": "engine", "resources": {"limits": limits}}, {"name": "proxy"}]

    assert accelerators_of({"spec": {"containers": containers}}) == 4
