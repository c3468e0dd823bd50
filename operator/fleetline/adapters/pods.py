"""Pod JSON to what sizing needs to know about a pod, and the workload that owns it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetline.adapters.manifest import parse_time_s
from fleetline.control.ports import Pod

Json = Mapping[str, Any]

OVER: Final = frozenset({"Failed", "Succeeded"})
"""Phases of pods that are over, evicted ones among them: their controller replaces them."""

CRASHING: Final = frozenset({"CrashLoopBackOff", "RunContainerError"})
HASH_LABEL: Final = "pod-template-hash"
LONGEST_MESSAGE: Final = 200


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod, and the node that it is bound to."""

    pod: Pod
    node: str
    labels: Mapping[str, str] = field(default_factory=dict)


def read_pod(item: Json) -> SeenPod | None:
    """Keep what is needed of a pod; None for one that is over."""
    metadata, spec = item.get("metadata") or {}, item.get("spec") or {}
    status = item.get("status") or {}
    if status.get("phase") in OVER:
        return None
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    scheduled = conditions.get("PodScheduled") or {}
    containers = status.get("containerStatuses") or ()
    waiting = {((one.get("state") or {}).get("waiting") or {}).get("reason") for one in containers}
    node = str(spec.get("nodeName") or "")
    unplaced = scheduled.get("reason") == "Unschedulable"
    pod = Pod(
        name=str(metadata.get("name", "")),
        created_s=parse_time_s(metadata.get("creationTimestamp")) or 0.0,
        ready_since_s=parse_time_s(ready.get("lastTransitionTime"))
        if ready.get("status") == "True"
        else None,
        is_terminating=metadata.get("deletionTimestamp") is not None,
        is_scheduled=bool(node),
        unschedulable_because=str(scheduled.get("message") or "Unschedulable")[:LONGEST_MESSAGE]
        if unplaced
        else "",
        restarts=sum(int(one.get("restartCount") or 0) for one in containers),
        is_failed=bool(waiting & CRASHING),
    )
    return SeenPod(pod, node, metadata.get("labels") or {})


def matching(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether labels fit a selector of equalities, as scale reports it; an empty one fits none."""
    terms = [term.replace("==", "=").partition("=") for term in selector.split(",") if term]
    return bool(terms) and all(
        sign and labels.get(name.strip()) == value.strip() for name, sign, value in terms
    )


def owner_of(item: Json) -> tuple[str, str, str] | None:
    """
    Name the workload that a pod belongs to, as (namespace, kind, name).

    A ReplicaSet's name is its Deployment's with the hash of the template.
    """
    metadata = item.get("metadata") or {}
    namespace = str(metadata.get("namespace", ""))
    for reference in metadata.get("ownerReferences") or ():
        if not reference.get("controller"):
            continue
        kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
        if kind == "ReplicaSet":
            hashed = str((metadata.get("labels") or {}).get(HASH_LABEL) or name.rpartition("-")[2])
            return namespace, "Deployment", name.removesuffix(f"-{hashed}")
        return namespace, kind, name
    return None
