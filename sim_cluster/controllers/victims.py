"""Which pods go first when a ReplicaSet gets smaller: the order of the real controller.

Unassigned before assigned, pending before unknown before running, not ready before ready, lower
`controller.kubernetes.io/pod-deletion-cost` first, then more pods of the same owner on its node,
then ready for a shorter time, more restarts, and younger. Times are compared by the logarithm of
the age, so among pods of about the same age the uid decides (KEP-2185, "random pod selection on
scale down").
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from sim_cluster import times
from sim_cluster.pods import is_ready, node_name, phase, ready_since_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim_cluster.api_client import Object

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS_PER_S = 1e9

Rank = tuple[bool, int, bool, int, int, int, int, int, str]


def choose(
    pods: Iterable[Object], count: int, *, relatives: Iterable[Object], now_s: float
) -> list[Object]:
    """Pick `count` of `pods`; `relatives` are all active pods of the same grand-owner."""
    neighbours = Counter(node for pod in relatives if (node := node_name(pod)))
    ordered = sorted(pods, key=lambda pod: rank(pod, neighbours=neighbours, now_s=now_s))
    return ordered[:count]


def rank(pod: Object, *, neighbours: Counter[str], now_s: float) -> Rank:
    """Sort key: lower goes first."""
    ready_age = _magnitude(now_s - (ready_since_s(pod) or now_s))
    age = _magnitude(now_s - times.parse(pod["metadata"]["creationTimestamp"]))
    node = node_name(pod)
    return (
        node is not None,
        _PHASE_ORDER.get(phase(pod), 2),
        is_ready(pod),
        _deletion_cost(pod),
        -neighbours[node] if node else 0,
        ready_age,
        -_restarts(pod),
        age,
        pod["metadata"]["uid"],
    )


def _magnitude(age_s: float) -> int:
    return -1 if age_s <= 0 else int(math.log2(age_s * _NANOSECONDS_PER_S))


def _deletion_cost(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount", 0)) for status in statuses), default=0)
