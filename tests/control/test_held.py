"""What keeps a turn from writing: modes, rivals, rollouts, shortage, replicas that are ill."""

from dataclasses import replace

import pytest

from fleetline.control.fleet import Mode
from fleetline.policy.decision import Reason
from tests.control.fakes import FakeCluster, a_fleet, a_target, pods, seen, turns


@pytest.mark.parametrize("mode", [Mode.RECOMMEND, Mode.PAUSED])
async def test_only_auto_writes(mode: Mode) -> None:
    cluster = FakeCluster(a_target(1))

    await turns(a_fleet(mode=mode), cluster, [seen(100.0)] * 5)

    assert cluster.written == []


async def test_paused_outranks_the_bounds() -> None:
    cluster = FakeCluster(a_target(30))

    taken = await turns(a_fleet(mode=Mode.PAUSED), cluster, [seen(1.0)])

    assert taken[-1].decision.desired_replicas == 30


async def test_a_target_at_zero_is_left_alone() -> None:
    cluster = FakeCluster(a_target(0))

    taken = await turns(a_fleet(), cluster, [seen(100.0)])

    assert taken[-1].decision.binding.reason is Reason.SCALING_DISABLED
    assert cluster.written == []


async def test_another_autoscaler_on_the_target_stops_everything() -> None:
    conflict = a_target(30, conflicts_with="HorizontalPodAutoscaler chat")
    cluster = FakeCluster(conflict)

    taken = await turns(a_fleet(), cluster, [seen(100.0)])

    assert taken[-1].decision.binding.reason is Reason.CONFLICTING_AUTOSCALER
    assert cluster.written == []


async def test_nothing_is_removed_while_the_target_rolls_out() -> None:
    cluster = FakeCluster(a_target(8, is_rolling_out=True))

    await turns(a_fleet(), cluster, [seen(0.0, replicas=8)] * 20)

    assert cluster.written == []


async def test_no_more_is_asked_for_while_pods_have_no_node() -> None:
    stuck = replace(
        pods(1)[0],
        name="stuck",
        created_s=-120.0,
        ready_since_s=None,
        is_scheduled=False,
        unschedulable_because="0/4 nodes are available: 4 Insufficient nvidia.com/gpu",
    )
    cluster = FakeCluster(a_target(3, pods=(*pods(2), stuck)))

    taken = await turns(a_fleet(), cluster, [seen(200.0, replicas=2)] * 3)

    assert taken[-1].decision.binding.reason is Reason.CAPACITY_SHORTAGE
    assert cluster.written == []


async def test_no_more_is_asked_for_while_a_quota_refuses_pods() -> None:
    refused = "exceeded quota: gpus, requested: 1, used: 4, limited: 4"
    cluster = FakeCluster(a_target(6, pods=pods(4), creation_failure=refused))

    taken = await turns(a_fleet(), cluster, [seen(400.0, replicas=4)] * 3)

    assert cluster.written == []
    assert taken[-1].decision.binding.reason is Reason.CAPACITY_SHORTAGE
    assert taken[-1].decision.binding.because == f"2 replicas cannot be placed: {refused}"


async def test_what_a_quota_refused_is_given_back_when_it_is_not_needed() -> None:
    cluster = FakeCluster(a_target(6, pods=pods(4), creation_failure="exceeded quota"))

    await turns(a_fleet(), cluster, [seen(0.0, replicas=4)] * 60)

    assert cluster.target.replicas == 1


async def test_nothing_is_removed_while_half_of_the_replicas_are_down() -> None:
    down = tuple(replace(pod, ready_since_s=None) for pod in pods(5))
    healthy = tuple(replace(pod, name=f"up-{pod.name}") for pod in pods(5))
    cluster = FakeCluster(a_target(10, pods=(*down, *healthy)))

    taken = await turns(a_fleet(), cluster, [seen(0.0, replicas=5)] * 60)

    assert cluster.written == []
    assert taken[-1].decision.binding.reason is Reason.REPLICAS_UNHEALTHY


async def test_crashing_pods_freeze_increases() -> None:
    crashing = replace(pods(1)[0], name="crash", ready_since_s=None, restarts=5)
    cluster = FakeCluster(a_target(3, pods=(*pods(2), crashing)))

    taken = await turns(a_fleet(), cluster, [seen(200.0, replicas=2)] * 3)

    assert taken[-1].decision.binding.reason is Reason.REPLICAS_UNHEALTHY
    assert cluster.written == []
