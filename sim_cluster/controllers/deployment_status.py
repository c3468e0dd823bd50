"""The `status` of a Deployment: counts, and the conditions that `kubectl rollout` waits for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sim_cluster import times
from sim_cluster.pods import condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object

_COMPLETE = "NewReplicaSetAvailable"


def counts(deployment: Object, new: Object | None, sets: Sequence[Object]) -> dict[str, Any]:
    """Add up the ReplicaSets; zero fields are absent (None), as in the real API."""
    total = _sum(sets, "replicas")
    available = _sum(sets, "availableReplicas")
    return {
        "observedGeneration": deployment["metadata"].get("generation"),
        "replicas": total or None,
        "updatedReplicas": (_count(new, "replicas") if new else 0) or None,
        "readyReplicas": _sum(sets, "readyReplicas") or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, total - available) or None,
        "terminatingReplicas": _sum(sets, "terminatingReplicas"),
    }


def conditions(
    deployment: Object, new: Object | None, status: dict[str, Any], *, min_available: int
) -> list[dict[str, Any]]:
    """Tell availability, progress and failure; times move only when something has changed."""
    old = {
        entry["type"]: entry for entry in (deployment.get("status") or {}).get("conditions") or ()
    }
    available = (status["availableReplicas"] or 0) >= min_available
    wanted = [
        _available(is_available=available),
        progress(deployment, new, status, old.get("Progressing")),
    ]
    failure = condition(new, "ReplicaFailure") if new else None
    if failure is not None:
        wanted.append({key: failure[key] for key in ("type", "status", "reason", "message")})
    return [_with_times(entry, old.get(entry["type"])) for entry in wanted if entry]


def progress(  # noqa: PLR0911 (a table of cases, in the order in which they count)
    deployment: Object, new: Object | None, status: dict[str, Any], before: Object | None
) -> dict[str, Any]:
    """Say how far the rollout is: complete, moving, stuck for too long, or as before."""
    what = f'ReplicaSet "{new["metadata"]["name"]}"' if new else "Deployment"
    if deployment["spec"].get("paused"):
        return _progressing("Unknown", "DeploymentPaused", "Deployment is paused")
    if before is not None and before["reason"] == "DeploymentPaused":
        return _progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
    if is_complete(deployment, status):
        return _progressing("True", _COMPLETE, f"{what} has successfully progressed.")
    if before is None:
        return _progressing("True", "NewReplicaSetCreated", f"Created new replica set {what[11:]}")
    if _has_moved(deployment.get("status") or {}, status):
        moved = _progressing("True", "ReplicaSetUpdated", f"{what} is progressing.")
        return {**moved, "lastUpdateTime": times.now()}
    if before["reason"] != _COMPLETE and remaining_s(deployment, before) <= 0:
        return _progressing(
            "False", "ProgressDeadlineExceeded", f"{what} has timed out progressing."
        )
    return dict(before)


def remaining_s(deployment: Object, progressing: Object) -> float:
    """How long the rollout may stand still from now on."""
    deadline_s = float(deployment["spec"].get("progressDeadlineSeconds") or 600)
    return times.parse(progressing["lastUpdateTime"]) + deadline_s - time.time()


def is_complete(deployment: Object, status: dict[str, Any]) -> bool:
    """Whether all pods are of the newest template, available, and nothing else is left."""
    replicas = int(deployment["spec"].get("replicas", 1))
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all((status[field] or 0) == replicas for field in fields)


def _has_moved(old: Object, new: dict[str, Any]) -> bool:
    def grew(field: str) -> bool:
        return (new[field] or 0) > (old.get(field) or 0)

    def older(status: Object) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    fields = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(map(grew, fields)) or older(new) < older(old)


def _available(*, is_available: bool) -> dict[str, Any]:
    if is_available:
        status, reason, verb = "True", "MinimumReplicasAvailable", "has"
    else:
        status, reason, verb = "False", "MinimumReplicasUnavailable", "does not have"
    message = f"Deployment {verb} minimum availability."
    return {"type": "Available", "status": status, "reason": reason, "message": message}


def _progressing(status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": "Progressing", "status": status, "reason": reason, "message": message}


def _with_times(entry: dict[str, Any], before: Object | None) -> dict[str, Any]:
    now = times.now()
    if before is None:
        return {"lastTransitionTime": now, "lastUpdateTime": now, **entry}
    same_status = before["status"] == entry["status"]
    same = same_status and before["reason"] == entry["reason"]
    return {
        "lastTransitionTime": before["lastTransitionTime"] if same_status else now,
        "lastUpdateTime": before["lastUpdateTime"] if same else now,
        **entry,
    }


def _count(item: Object, field: str) -> int:
    return int((item.get("status") or {}).get(field) or 0)


def _sum(items: Sequence[Object], field: str) -> int:
    return sum(_count(item, field) for item in items)
