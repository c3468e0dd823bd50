"""
One view of the cluster for all fleets: each collection is read once a turn, however many.

Fleets and workloads are listed, pods are watched. Only the fields that sizing needs are kept, and
what did not change since the last turn is the same object, so that thousands stay some megabytes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.listed import (
    FLEET_PAGES,
    NODE_PAGES,
    WORKLOAD_PAGES,
    Workload,
    fleet_of,
    node_of,
    workload_of,
)
from fleetline.adapters.manifest import GROUP, PLURAL, VERSION
from fleetline.adapters.pod_watch import Key, PodWatch, list_pods
from fleetline.adapters.pods import SeenPod
from fleetline.errors import ObservationError

Json = Mapping[str, Any]

FLEETS: Final = f"/apis/{GROUP}/{VERSION}"
WORKLOADS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
SLOW_PERIOD_S: Final = 60.0
"""Nodes, autoscalers and profiles change seldom. [s]"""


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """Everything that was listed."""

    fleets: list[Json] = field(default_factory=list)
    pods: dict[Key, list[SeenPod]] = field(default_factory=dict)
    """By namespace, kind and name of the workload that owns them."""
    workloads: dict[Key, Workload] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)
    """Labels and allocatable resources by name."""
    autoscalers: dict[Key, str] = field(default_factory=dict)
    """Who scales a target, in words."""
    profiles: list[Json] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Optional collections that may not or cannot be read, and why."""


class SnapshotReader:
    """Reads what a turn needs, in the watched namespaces or in all."""

    def __init__(self, api: ApiClient, namespaces: tuple[str, ...]) -> None:
        """Read in `namespaces`, or everywhere if there are none."""
        self._api = api
        self._namespaces = namespaces
        self._last = Snapshot()
        self._slow = Snapshot()
        self._slow_s: float | None = None
        self._watches: dict[str, PodWatch] = {}

    def start(self) -> None:
        """Watch the pods from now on; without it they are listed at every reading."""
        for path in self._paths("/api/v1", "pods"):
            self._watches[path] = PodWatch(self._api, path)
            self._watches[path].start()

    async def stop(self) -> None:
        """Watch no more."""
        for watch in self._watches.values():
            await watch.stop()
        self._watches.clear()

    async def read(self) -> Snapshot:
        """
        Read everything.

        Raises
        ------
        ObservationError
            If fleets or workloads cannot be listed. Pods and all that is optional may be missing.
        """
        view = Snapshot()
        await asyncio.gather(
            self._fleets(view), self._pods(view), *(self._workloads(view, k) for k in WORKLOADS)
        )
        await self._read_slow(view)
        self._last = view
        return view

    async def check(self) -> None:
        """Read one page of fleets; ApiError if that is forbidden or the CRD is not installed."""
        for path in self._paths(FLEETS, PLURAL):
            await self._api.get(path, {"limit": "1"})

    def _paths(self, prefix: str, plural: str) -> list[str]:
        if not self._namespaces:
            return [f"{prefix}/{plural}"]
        return [f"{prefix}/namespaces/{name}/{plural}" for name in self._namespaces]

    async def _fleets(self, view: Snapshot) -> None:
        known = {one["metadata"]["uid"]: one for one in self._last.fleets}
        for path in self._paths(FLEETS, PLURAL):
            async for item in self._api.items(path, FLEET_PAGES):
                view.fleets.append(fleet_of(item, known))

    async def _pods(self, view: Snapshot) -> None:
        try:
            for path in self._paths("/api/v1", "pods"):
                for owner, pods in (await self._pods_at(path)).items():
                    view.pods[owner] = list(pods.values())
        except ApiError as error:
            if error.status != 403:
                raise
            view.refused["pods"] = str(error)

    async def _pods_at(self, path: str) -> Mapping[Key, Mapping[str, SeenPod]]:
        watch = self._watches.get(path)
        if watch is not None:
            return await watch.pods()
        store, _ = await list_pods(self._api, path)
        return store.by_owner

    async def _workloads(self, view: Snapshot, kind: str) -> None:
        for path in self._paths("/apis/apps/v1", WORKLOADS[kind]):
            async for item in self._api.items(path, WORKLOAD_PAGES):
                key = (item.metadata.namespace, kind, item.metadata.name)
                view.workloads[key] = workload_of(item, self._last.workloads.get(key))

    async def _read_slow(self, view: Snapshot) -> None:
        """Nodes, other autoscalers and profiles: optional, and not in every turn."""
        now_s = asyncio.get_running_loop().time()
        unknown = {pod.node for pods in view.pods.values() for pod in pods if pod.node}
        stale = self._slow_s is None or now_s - self._slow_s >= SLOW_PERIOD_S
        if stale or not unknown <= self._slow.nodes.keys() | {""}:
            slow = Snapshot()
            await asyncio.gather(
                self._optional(slow, "nodes", self._nodes(slow)),
                self._optional(slow, "horizontalpodautoscalers", self._autoscalers(slow)),
                self._optional(slow, "scaledobjects", self._scaled_objects(slow)),
                self._optional(slow, "acceleratorprofiles", self._profiles(slow)),
            )
            if slow.nodes == self._slow.nodes:
                slow.nodes = self._slow.nodes  # the same object: nothing is to be found out anew
            self._slow, self._slow_s = slow, now_s
        view.nodes, view.autoscalers = self._slow.nodes, self._slow.autoscalers
        view.profiles = self._slow.profiles
        view.refused |= self._slow.refused

    async def _optional(self, slow: Snapshot, name: str, reading: Any) -> None:
        """Await a reading that is good to have: without it a feature is off, and that is said."""
        try:
            await reading
        except ObservationError as error:
            known = self._slow
            slow.refused[name] = str(error)
            gone = isinstance(error, ApiError) and error.status in (403, 404)
            if name == "nodes" and not gone:
                slow.nodes = known.nodes
            elif name == "acceleratorprofiles" and not gone:
                slow.profiles = known.profiles
            elif not gone:
                slow.autoscalers = {**known.autoscalers, **slow.autoscalers}

    async def _nodes(self, slow: Snapshot) -> None:
        async for item in self._api.items("/api/v1/nodes", NODE_PAGES):
            slow.nodes[item.metadata.name] = node_of(item)

    async def _autoscalers(self, slow: Snapshot) -> None:
        for path in self._paths("/apis/autoscaling/v2", "horizontalpodautoscalers"):
            async for item in self._api.pages(path):
                _note_autoscaler(slow, item, "HorizontalPodAutoscaler")

    async def _scaled_objects(self, slow: Snapshot) -> None:
        for path in self._paths("/apis/keda.sh/v1alpha1", "scaledobjects"):
            async for item in self._api.pages(path):
                _note_autoscaler(slow, item, "ScaledObject")

    async def _profiles(self, slow: Snapshot) -> None:
        async for item in self._api.pages(f"{FLEETS}/acceleratorprofiles"):
            slow.profiles.append(item)


def _note_autoscaler(slow: Snapshot, item: Json, kind: str) -> None:
    metadata = item.get("metadata") or {}
    reference = (item.get("spec") or {}).get("scaleTargetRef") or {}
    target_kind = str(reference.get("kind") or "Deployment")
    key = (str(metadata.get("namespace", "")), target_kind, str(reference.get("name", "")))
    slow.autoscalers[key] = f"{kind} {metadata.get('name', '')}"
