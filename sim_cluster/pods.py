"""What a Pod object says about its pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster import times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.api_client import Object


def condition(item: Object, kind: str) -> Mapping[str, Any] | None:
    """Find one entry of `status.conditions`, of a pod or of anything else."""
    for entry in (item.get("status") or {}).get("conditions") or ():
        if entry["type"] == kind:
            return dict(entry)
    return None


def is_ready(pod: Object) -> bool:
    """Whether its condition Ready is True."""
    ready = condition(pod, "Ready")
    return ready is not None and ready["status"] == "True"


def ready_since_s(pod: Object) -> float | None:
    """When it became ready, in seconds since 1970; None if it is not ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return times.parse(ready["lastTransitionTime"]) if ready.get("lastTransitionTime") else 0.0


def is_available(pod: Object, *, min_ready_s: float, now_s: float) -> bool:
    """Whether it has been ready for long enough."""
    since_s = ready_since_s(pod)
    return since_s is not None and now_s - since_s >= min_ready_s


def phase(pod: Object) -> str:
    """Pending, Running, Succeeded, Failed or Unknown."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    """Whether it has ended for good."""
    return phase(pod) in {"Succeeded", "Failed"}


def is_terminating(pod: Object) -> bool:
    """Whether somebody has asked for its deletion."""
    return pod["metadata"].get("deletionTimestamp") is not None


def is_active(pod: Object) -> bool:
    """Whether it counts as a replica: neither ended nor ending."""
    return not is_finished(pod) and not is_terminating(pod)


def node_name(pod: Object) -> str | None:
    """Return the node that it is bound to, or None."""
    return pod["spec"].get("nodeName") or None


def controller_of(item: Object) -> Mapping[str, Any] | None:
    """Find the owner reference of the controller that manages an object."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None
