"""Fleets and workloads as lists bring them, reduced to what sizing needs; unchanged ones stay."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from fleetline.adapters.listing import page_reader
from fleetline.adapters.pods import LONGEST_MESSAGE

Json = Mapping[str, Any]


class FleetMetadata(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Of a fleet; who manages which field is left out, as it is larger than all the rest."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class FleetItem(msgspec.Struct, rename="camel"):
    """A ServingFleet in a list, its parts not yet decoded."""

    metadata: FleetMetadata
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class WorkloadMetadata(msgspec.Struct, rename="camel", gc=False):
    """Of a Deployment or StatefulSet."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class WorkloadSpec(msgspec.Struct, rename="camel"):
    """Of a Deployment or StatefulSet, its pod template not yet decoded."""

    replicas: int | None = None
    template: msgspec.Raw = msgspec.Raw(b"{}")


class WorkloadCondition(msgspec.Struct, gc=False):
    """Of a Deployment."""

    type: str = ""
    status: str = ""
    message: str | None = None


class WorkloadStatus(msgspec.Struct, rename="camel"):
    """Of a Deployment or StatefulSet, as far as it tells of a rollout and of refused pods."""

    replicas: int | None = None
    updated_replicas: int | None = None
    current_revision: str | None = None
    update_revision: str | None = None
    conditions: list[WorkloadCondition] | None = None


class WorkloadItem(msgspec.Struct):
    """A Deployment or StatefulSet in a list."""

    metadata: WorkloadMetadata
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)


class NodeMetadata(msgspec.Struct, gc=False):
    """Of a node."""

    name: str
    labels: dict[str, str] | None = None


class NodeStatus(msgspec.Struct, gc=False):
    """Of a node."""

    allocatable: dict[str, str] | None = None


class NodeItem(msgspec.Struct):
    """A node in a list."""

    metadata: NodeMetadata
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


NODE_PAGES: Final = page_reader(NodeItem)
FLEET_PAGES: Final = page_reader(FleetItem)
WORKLOAD_PAGES: Final = page_reader(WorkloadItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment or StatefulSet, as far as sizing cares."""

    uid: str
    replicas: int
    resource_version: str
    template_json: bytes
    is_rolling_out: bool
    creation_failure: str = ""
    """Why pods cannot be created (a quota, an admission webhook), or empty."""

    @property
    def template(self) -> Json:
        """The pod template; decoded when it is asked for, which is when the workload changed."""
        template: Json = msgspec.json.decode(self.template_json) or {}
        return template


def fleet_of(item: FleetItem, known: Mapping[str, Json]) -> Json:
    """Return a fleet as JSON; the same object as before if it did not change."""
    metadata = item.metadata
    before = known.get(metadata.uid)
    if before is not None and before["metadata"]["resourceVersion"] == metadata.resource_version:
        return before
    body: dict[str, Any] = {"metadata": msgspec.to_builtins(metadata)}
    for name, raw in (("spec", item.spec), ("status", item.status)):
        part = msgspec.json.decode(raw)
        if part is not None:
            body[name] = shared(part)
    return body


def shared(whole: Json) -> Json:
    """Return what equals it, made of parts that equal ones of other fleets share: never change."""
    return {
        name: _part(msgspec.json.encode(part, order="sorted"))
        if isinstance(part, (dict, list))
        else part
        for name, part in whole.items()
    }


@lru_cache(maxsize=2048)
def _part(content: bytes) -> Any:
    return msgspec.json.decode(content)


def node_of(item: NodeItem) -> Json:
    """Return labels and allocatable resources of a node; texts that nodes share are kept once."""
    labels = {name: sys.intern(value) for name, value in (item.metadata.labels or {}).items()}
    return {"labels": labels, "allocatable": shared({"": item.status.allocatable or {}})[""]}


def workload_of(item: WorkloadItem, before: Workload | None) -> Workload:
    """Return a workload; the same object as before if it did not change."""
    metadata, spec = item.metadata, item.spec
    version = metadata.uid, metadata.resource_version
    if before is not None and (before.uid, before.resource_version) == version:
        return before
    return Workload(
        uid=metadata.uid,
        replicas=1 if spec.replicas is None else spec.replicas,
        resource_version=metadata.resource_version,
        template_json=bytes(spec.template),
        is_rolling_out=_is_rolling_out(item.status),
        creation_failure=_creation_failure(item.status),
    )


def _creation_failure(status: WorkloadStatus) -> str:
    """Say why pods cannot be created, as the condition ReplicaFailure does."""
    for one in status.conditions or ():
        if one.type == "ReplicaFailure" and one.status == "True":
            return (one.message or "FailedCreate")[:LONGEST_MESSAGE]
    return ""


def _is_rolling_out(status: WorkloadStatus) -> bool:
    """Whether pods of an older template are still there."""
    if status.update_revision is not None:
        return status.current_revision != status.update_revision
    return (status.updated_replicas or 0) < (status.replicas or 0)
