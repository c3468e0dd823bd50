"""Pods as counts: which serve, which are coming, which never will."""

from typing import Final

from fleetline.control.ports import Pod, Target
from fleetline.policy.situation import Health

CRASHING_RESTARTS: Final = 3
"""A pod that restarted this often and is not ready crashes again and again."""

SCHEDULING_GRACE_S: Final = 60.0
"""A pod may wait this long for a node before that is called a shortage: node autoscalers begin to
act within 10 to 30 s. [s]"""


def health_of(target: Target, now_s: float, *, deadline_s: float) -> Health:
    """Count pods by what they are good for; without pods to see, trust the count asked for."""
    if not target.pods and not target.creation_failure:
        return Health(ready=target.replicas)
    counts = {"ready": 0, "starting": 0, "failed": 0, "crashing": 0, "unschedulable": 0}
    shortage = ""
    for pod in target.pods:
        if pod.is_terminating:
            continue
        kind = kind_of(pod, now_s, deadline_s=deadline_s)
        counts[kind] += 1
        if kind == "unschedulable":
            shortage = shortage or pod.unschedulable_because
    if target.creation_failure:
        counts["unschedulable"] += max(0, target.replicas - sum(counts.values()))
        shortage = shortage or target.creation_failure
    return Health(**counts, shortage=shortage)


def kind_of(pod: Pod, now_s: float, *, deadline_s: float) -> str:
    """Name of the count of `Health` that a pod belongs to."""
    if pod.ready_since_s is not None:
        return "ready"
    if pod.is_failed or pod.restarts >= CRASHING_RESTARTS:
        return "crashing"
    age_s = now_s - pod.created_s
    if not pod.is_scheduled:
        waited = bool(pod.unschedulable_because) and age_s > SCHEDULING_GRACE_S
        return "unschedulable" if waited else "starting"
    return "failed" if age_s > deadline_s else "starting"


def starts_of(target: Target) -> dict[str, float]:
    """Seconds from creation to first readiness, by pod, of pods that never restarted."""
    return {
        pod.name: pod.ready_since_s - pod.created_s
        for pod in target.pods
        if pod.ready_since_s is not None and pod.restarts == 0
    }


def youngest_age_s(target: Target, now_s: float) -> float:
    """Age of the replica that became ready last; infinite if none is ready. [s]"""
    ages = [now_s - pod.ready_since_s for pod in target.pods if pod.ready_since_s is not None]
    return min(ages, default=float("inf"))
