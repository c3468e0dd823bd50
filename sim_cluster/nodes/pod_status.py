"""The status of a pod as a kubelet writes it, as a value that depends on the pod's stage alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.informer import Key


class Stage(StrEnum):
    """Where a pod is in its life, seen from its node."""

    PULLING = "Pulling"
    """Its image cannot be had; the pod stays Pending."""
    STARTING = "Starting"
    """Its container runs: weights are being loaded, nothing is served yet."""
    SERVING = "Serving"
    CRASHED = "Crashed"
    """Its container has ended and waits for the back-off."""
    DRAINING = "Draining"
    """It is being deleted: no new requests, the old ones are finished."""
    ENDED = "Ended"
    """Its process is gone; the object may go."""


SIGKILL_EXIT_CODE: Final = 137
CRASH_EXIT_CODE: Final = 1


@dataclass(slots=True, kw_only=True)
class SimulatedPod:
    """What a node knows of one of its pods."""

    key: Key
    uid: str
    node: str
    ip: str
    stage: Stage
    accelerators: int = 0
    """How many it holds on its node."""
    startup_s: float = 0.0
    restarts: int = 0
    readiness_fails: bool = False
    fails_to_start: bool = False
    """Its container crashes at the end of every start."""
    started_at: str = ""
    ended_at: str = ""
    begun_at: str = ""
    sent: int | None = None
    """Digest of the status that the API server has, as far as we know."""
    sent_ready: bool | None = None
    """Readiness in that status."""
    changed_at: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Condition type: its status, and since when."""
    wake: Any = None
    """Timer of the next change of stage."""

    @property
    def is_ready(self) -> bool:
        """Whether it passes its readiness probe."""
        return self.stage is Stage.SERVING and not self.readiness_fails

    @property
    def is_reported(self) -> bool:
        """Whether the API server knows of its readiness as it is now."""
        return self.sent_ready is self.is_ready


def timestamp() -> str:
    """Write the present moment as the API does, in whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def status_of(pod: SimulatedPod, manifest: Mapping[str, Any], *, host_ip: str) -> dict[str, Any]:
    """Write the whole status of a pod; lists are complete, as merge patches need them."""
    phase = "Pending" if pod.stage is Stage.PULLING else "Running"
    containers = manifest["spec"].get("containers", ())
    status: dict[str, Any] = {
        "phase": phase,
        "conditions": _conditions(pod),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": pod.begun_at,
        "containerStatuses": [_container(pod, container) for container in containers],
    }
    if phase == "Running":
        status |= {"podIP": pod.ip, "podIPs": [{"ip": pod.ip}]}
    return status


def _conditions(pod: SimulatedPod) -> list[dict[str, Any]]:
    ready = "True" if pod.is_ready else "False"
    states = {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": "True",
    }
    now = timestamp()
    conditions = []
    for kind, state in states.items():
        if pod.changed_at.get(kind, ("", ""))[0] != state:
            pod.changed_at[kind] = (state, now)
        condition = {
            "type": kind,
            "status": state,
            "lastTransitionTime": pod.changed_at[kind][1],
        }
        if state == "False":
            condition["reason"] = "ContainersNotReady"
            condition["message"] = f"the container is {pod.stage.value.lower()}"
        conditions.append(condition)
    return conditions


def _container(pod: SimulatedPod, container: Mapping[str, Any]) -> dict[str, Any]:
    running = pod.stage in {Stage.STARTING, Stage.SERVING, Stage.DRAINING}
    image = container.get("image", "")
    status: dict[str, Any] = {
        "name": container["name"],
        "image": image,
        "imageID": "" if pod.stage is Stage.PULLING else f"sim://{image}",
        "ready": pod.is_ready,
        "started": pod.stage in {Stage.SERVING, Stage.DRAINING},
        "restartCount": pod.restarts,
        "state": _state(pod),
        "lastState": {},
    }
    if pod.stage is not Stage.PULLING:
        status["containerID"] = f"sim://{pod.uid}/{container['name']}/{pod.restarts}"
    if (running and pod.restarts) or pod.stage is Stage.CRASHED:
        status["lastState"] = {"terminated": _terminated(pod)}
    return status


def _state(pod: SimulatedPod) -> dict[str, Any]:
    match pod.stage:
        case Stage.PULLING:
            message = "the image cannot be pulled: the pod's annotation says so"
            return {"waiting": {"reason": "ImagePullBackOff", "message": message}}
        case Stage.CRASHED:
            message = f"back-off after {pod.restarts} restarts"
            return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        case Stage.ENDED:
            return {"terminated": _terminated(pod)}
        case _:
            return {"running": {"startedAt": pod.started_at}}


def _terminated(pod: SimulatedPod) -> dict[str, Any]:
    return {
        "exitCode": CRASH_EXIT_CODE,
        "reason": "Error",
        "startedAt": pod.begun_at,
        "finishedAt": pod.ended_at or timestamp(),
    }
