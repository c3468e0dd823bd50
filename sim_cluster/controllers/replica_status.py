"""The `status` of a ReplicaSet, counted from its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster import times
from sim_cluster.pods import condition, is_available, is_ready
from sim_cluster.selectors import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object


def status_of(
    owner: Object, *, active: Sequence[Object], going: int, failure: str | None, now_s: float
) -> dict[str, Any]:
    """Count the pods; `failure` says why the last one could not be created."""
    wanted = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    min_ready_s = float(owner["spec"].get("minReadySeconds") or 0)
    return {
        "observedGeneration": owner["metadata"].get("generation"),
        "replicas": len(active),
        "fullyLabeledReplicas": sum(wanted.items() <= labels_of(pod).items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(
            is_available(pod, min_ready_s=min_ready_s, now_s=now_s) for pod in active
        ),
        "terminatingReplicas": going,
        "conditions": _conditions(owner, failure),
    }


def _conditions(owner: Object, failure: str | None) -> list[dict[str, Any]] | None:
    if failure is None:
        return None
    before = condition(owner, "ReplicaFailure")
    since = times.now() if before is None else before["lastTransitionTime"]
    return [
        {
            "type": "ReplicaFailure",
            "status": "True",
            "reason": "FailedCreate",
            "message": failure,
            "lastTransitionTime": since,
        }
    ]
