"""Pods counted by what they are good for."""

import pytest

from fleetline.control.health import CRASHING_RESTARTS, SCHEDULING_GRACE_S, health_of
from fleetline.control.ports import Pod, Target
from fleetline.policy.situation import Health

NOW_S = 10_000.0
DEADLINE_S = 600.0
QUOTA = 'pods "chat-" is forbidden: exceeded quota'
NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def pod(*, age_s: float = 30.0, ready: bool = False, **more: object) -> Pod:
    fields: dict[str, object] = {
        "name": "chat-1",
        "created_s": NOW_S - age_s,
        "ready_since_s": NOW_S - 1.0 if ready else None,
        "is_scheduled": True,
    }
    return Pod(**(fields | more))  # type: ignore[arg-type]


def health(replicas: int, *pods: Pod, creation_failure: str = "") -> Health:
    target = Target(
        replicas=replicas,
        resource_version="1",
        pods=pods,
        creation_failure=creation_failure,
    )
    return health_of(target, NOW_S, deadline_s=DEADLINE_S)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod(ready=True), Health(ready=1), id="ready"),
        pytest.param(pod(), Health(ready=0, starting=1), id="starting"),
        pytest.param(pod(age_s=DEADLINE_S + 1.0), Health(ready=0, failed=1), id="never ready"),
        pytest.param(pod(restarts=CRASHING_RESTARTS), Health(ready=0, crashing=1), id="crashing"),
        pytest.param(pod(is_failed=True), Health(ready=0, crashing=1), id="failed"),
        pytest.param(
            pod(is_scheduled=False, unschedulable_because=NO_GPU, age_s=SCHEDULING_GRACE_S - 1.0),
            Health(ready=0, starting=1),
            id="a node may come",
        ),
        pytest.param(
            pod(is_scheduled=False, unschedulable_because=NO_GPU, age_s=SCHEDULING_GRACE_S + 1.0),
            Health(ready=0, unschedulable=1, shortage=NO_GPU),
            id="no node comes",
        ),
        pytest.param(pod(ready=True, is_terminating=True), Health(ready=0), id="terminating"),
    ],
)
def test_a_pod_counts_as_what_it_is_good_for(one: Pod, expected: Health) -> None:
    assert health(1, one) == expected


def test_pods_that_may_not_be_created_are_a_shortage() -> None:
    seen = health(5, pod(ready=True), pod(), creation_failure=QUOTA)

    assert seen == Health(ready=1, starting=1, unschedulable=3, shortage=QUOTA)


def test_pods_that_may_not_be_created_serve_nothing_even_if_there_are_none() -> None:
    assert health(2, creation_failure=QUOTA) == Health(ready=0, unschedulable=2, shortage=QUOTA)


def test_without_pods_to_see_the_count_asked_for_is_trusted() -> None:
    assert health(4) == Health(ready=4)
