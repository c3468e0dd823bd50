"""The `status` of a StatefulSet, counted from its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster.controllers.ordinals import REVISION_LABEL
from sim_cluster.pods import is_available, is_ready, is_terminating
from sim_cluster.selectors import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object


def status_of(
    owner: Object, pods: Sequence[Object], *, current: str, update: str, now_s: float
) -> dict[str, Any]:
    """Count the pods by revision; once all are of the new one and ready, it is the current one."""
    min_ready_s = float(owner["spec"].get("minReadySeconds") or 0)
    active = [pod for pod in pods if not is_terminating(pod)]
    ready = sum(map(is_ready, active))
    updated = _of_revision(active, update)
    replicas = int(owner["spec"].get("replicas", 1))
    is_complete = updated == ready == len(pods) == replicas
    settled = update if is_complete else current
    return {
        "observedGeneration": owner["metadata"].get("generation"),
        "replicas": len(pods),
        "readyReplicas": ready or None,
        "availableReplicas": sum(
            is_available(pod, min_ready_s=min_ready_s, now_s=now_s) for pod in active
        ),
        "currentReplicas": _of_revision(active, settled) or None,
        "updatedReplicas": updated or None,
        "currentRevision": settled,
        "updateRevision": update,
        "collisionCount": 0,
    }


def _of_revision(pods: Sequence[Object], revision: str) -> int:
    return sum(labels_of(pod).get(REVISION_LABEL) == revision for pod in pods)
