"""What sizing needs to know about a pod, and the workload that owns it; read field by field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from fleetline.adapters.manifest import parse_time_s
from fleetline.control.ports import Pod

Json = Mapping[str, Any]

OVER: Final = frozenset({"Failed", "Succeeded"})
"""Phases of pods that are over, evicted ones among them: their controller replaces them."""

CRASHING: Final = frozenset({"CrashLoopBackOff", "RunContainerError"})
HASH_LABEL: Final = "pod-template-hash"
LONGEST_MESSAGE: Final = 200


class Owner(msgspec.Struct, gc=False):
    """An owner reference."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None


class PodMetadata(msgspec.Struct, rename="camel"):
    """Of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class PodCondition(msgspec.Struct, rename="camel", gc=False):
    """Of a pod."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class Waiting(msgspec.Struct, gc=False):
    """Why a container does not run."""

    reason: str | None = None


class ContainerState(msgspec.Struct):
    """Of a container that waits."""

    waiting: Waiting | None = None


class ContainerStatus(msgspec.Struct, rename="camel"):
    """Of one container."""

    restart_count: int | None = None
    state: ContainerState | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """What a kubelet says."""

    phase: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    """Where a pod runs."""

    node_name: str | None = None


class PodObject(msgspec.Struct):
    """A pod as the API server sends it, as far as it matters here."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod, and the node that it is bound to."""

    pod: Pod
    node: str
    labels: Mapping[str, str] = field(default_factory=dict)


def read_pod(item: PodObject) -> SeenPod | None:
    """Keep what is needed of a pod; None for one that is over."""
    metadata, status = item.metadata, item.status
    if status.phase in OVER:
        return None
    conditions = {one.type: one for one in status.conditions or ()}
    ready = conditions.get("Ready") or PodCondition()
    scheduled = conditions.get("PodScheduled") or PodCondition()
    containers = status.container_statuses or ()
    waiting = {one.state.waiting.reason for one in containers if one.state and one.state.waiting}
    node = item.spec.node_name or ""
    unplaced = scheduled.reason == "Unschedulable"
    pod = Pod(
        name=metadata.name,
        created_s=_time_s(metadata.creation_timestamp) or 0.0,
        ready_since_s=_time_s(ready.last_transition_time) if ready.status == "True" else None,
        is_terminating=metadata.deletion_timestamp is not None,
        is_scheduled=bool(node),
        unschedulable_because=(scheduled.message or "Unschedulable")[:LONGEST_MESSAGE]
        if unplaced
        else "",
        restarts=sum(one.restart_count or 0 for one in containers),
        is_failed=bool(waiting & CRASHING),
    )
    return SeenPod(pod, node, metadata.labels or {})


@lru_cache(maxsize=4096)
def _time_s(text: str | None) -> float | None:
    """Unix time of a time stamp; pods of one rollout share theirs. [s]"""
    return parse_time_s(text)


def matching(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether labels fit a selector of equalities, as scale reports it; an empty one fits none."""
    terms = [term.replace("==", "=").partition("=") for term in selector.split(",") if term]
    return bool(terms) and all(
        sign and labels.get(name.strip()) == value.strip() for name, sign, value in terms
    )


def owner_of(item: PodObject) -> tuple[str, str, str] | None:
    """
    Name the workload that a pod belongs to, as (namespace, kind, name).

    A ReplicaSet's name is its Deployment's with the hash of the template.
    """
    metadata = item.metadata
    for reference in metadata.owner_references or ():
        if not reference.controller:
            continue
        kind, name = reference.kind, reference.name
        if kind == "ReplicaSet":
            hashed = (metadata.labels or {}).get(HASH_LABEL) or name.rpartition("-")[2]
            return metadata.namespace, "Deployment", name.removesuffix(f"-{hashed}")
        return metadata.namespace, kind, name
    return None
