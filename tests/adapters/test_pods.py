"""Pod JSON to what sizing needs: readiness, start, place, owner."""

from typing import Any

import msgspec
import pytest

from fleetline.adapters.pods import PodObject, matching, owner_of, read_pod


def a_pod(**changes: Any) -> PodObject:
    pod: dict[str, Any] = {
        "metadata": {
            "namespace": "default",
            "name": "chat-5d9f-x1",
            "creationTimestamp": "2026-11-30T08:00:00Z",
            "labels": {"pod-template-hash": "5d9f"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "chat-5d9f", "controller": True}],
        },
        "spec": {"nodeName": "gpu-1"},
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastTransitionTime": "2026-11-30T08:01:30Z",
                }
            ],
        },
    }
    for name, value in changes.items():
        pod[name] = {**pod[name], **value}
    return msgspec.json.decode(msgspec.json.encode(pod), type=PodObject)


def test_a_ready_pod_tells_how_long_it_took() -> None:
    seen = read_pod(a_pod())

    assert seen is not None
    assert seen.pod.ready_since_s is not None
    assert seen.pod.ready_since_s - seen.pod.created_s == 90.0
    assert (seen.node, seen.pod.is_scheduled) == ("gpu-1", True)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_are_over_are_ignored(phase: str) -> None:
    assert read_pod(a_pod(status={"phase": phase})) is None


def test_a_pod_without_a_node_says_why() -> None:
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/4 nodes are available",
    }

    seen = read_pod(a_pod(spec={"nodeName": ""}, status={"conditions": [waiting]}))

    assert seen is not None
    assert not seen.pod.is_scheduled
    assert seen.pod.unschedulable_because == "0/4 nodes are available"


def test_a_crash_loop_is_seen() -> None:
    crashing = {"restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}

    seen = read_pod(a_pod(status={"conditions": [], "containerStatuses": [crashing]}))

    assert seen is not None
    assert (seen.pod.is_failed, seen.pod.restarts) == (True, 7)


def test_an_empty_pod_is_read_without_a_word() -> None:
    empty = msgspec.json.decode(b"{}", type=PodObject)

    assert read_pod(empty) is not None
    assert owner_of(empty) is None


def test_the_owner_of_a_replica_set_is_its_deployment() -> None:
    assert owner_of(a_pod()) == ("default", "Deployment", "chat")


def test_the_owner_of_a_stateful_set_is_itself() -> None:
    reference = [{"kind": "StatefulSet", "name": "chat", "controller": True}]

    owner = owner_of(a_pod(metadata={"ownerReferences": reference}))

    assert owner == ("default", "StatefulSet", "chat")


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ("app=chat", True),
        ("app=chat,role=leader", True),
        ("app==chat", True),
        ("app=code", False),
        ("app=chat,zone=a", False),
        ("app in (chat)", False),
        ("", False),
    ],
)
def test_a_selector_of_equalities_finds_its_pods(selector: str, *, fits: bool) -> None:
    assert matching(selector, {"app": "chat", "role": "leader"}) is fits
