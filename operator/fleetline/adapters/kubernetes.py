"""The port `Cluster` made real: targets from the snapshot, counts through the scale subresource."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.catalog import Catalog
from fleetline.adapters.discovery import Discovery, discover
from fleetline.adapters.listed import Workload
from fleetline.adapters.manifest import KIND, FleetObject
from fleetline.adapters.node_labels import NodeAccelerator, accelerator_of_node
from fleetline.adapters.pod_watch import Key
from fleetline.adapters.pods import SeenPod, matching
from fleetline.adapters.profiles import with_profiles
from fleetline.adapters.scale import Scales, TargetError
from fleetline.adapters.snapshot import WORKLOADS, Snapshot
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Pod, Target
from fleetline.errors import ManifestError, ObservationError
from fleetline.policy.decision import Reason


class KubernetesCluster:
    """Reads targets from the last snapshot; writes with fresh resource versions."""

    def __init__(self, api: ApiClient, catalog: Catalog) -> None:
        """Begin with an empty view; `look_at` brings the first."""
        self.scales = Scales(api)
        self._packaged = catalog
        self.catalog = catalog
        self._view = Snapshot()
        self._objects: dict[str, FleetObject] = {}
        self._owners: dict[Key, FleetObject] = {}
        self._accelerators: dict[str, NodeAccelerator | None] = {}
        self._selectors: dict[str, str] = {}
        self._found: dict[str, tuple[tuple[object, ...], Discovery]] = {}
        self._prices: dict[str, float | None] = {}
        self.discoveries: dict[str, Discovery] = {}
        self.profile_problems: tuple[str, ...] = ()

    def look_at(self, view: Snapshot, objects: Sequence[FleetObject]) -> None:
        """Take this turn's snapshot and the fleets in it."""
        if view.profiles != self._view.profiles:
            self.catalog, self.profile_problems = with_profiles(self._packaged, view.profiles)
        if view.nodes is not self._view.nodes or view.profiles != self._view.profiles:
            self._accelerators, self._found, self._prices = {}, {}, {}
        self._view = view
        self._objects = {one.fleet.key: one for one in objects}
        self._owners = {}
        for one in sorted(objects, key=lambda one: (one.fleet.created_s, one.fleet.name)):
            self._owners.setdefault(_key(one.fleet), one)
        self.discoveries = {k: v for k, v in self.discoveries.items() if k in self._objects}
        self._found = {k: v for k, v in self._found.items() if k in self._objects}

    def pods_of(self, fleet: Fleet) -> tuple[Pod, ...]:
        """Pods of a fleet's target in this turn's snapshot."""
        return tuple(seen.pod for seen in self._seen_pods(fleet))

    def _seen_pods(self, fleet: Fleet) -> list[SeenPod]:
        """Pods by their owner; of unusual kinds by the selector that the scale subresource told."""
        owned = self._view.pods.get(_key(fleet))
        selector = self._selectors.get(fleet.key, "")
        if owned is not None or not selector:
            return owned or []
        return [
            seen
            for (namespace, _, _), pods in self._view.pods.items()
            if namespace == fleet.namespace
            for seen in pods
            if matching(selector, seen.labels)
        ]

    async def read_target(self, fleet: Fleet) -> Target:
        """Put the target together from the snapshot; ask the API server for unusual kinds."""
        key = _key(fleet)
        if fleet.target.api_version == "apps/v1" and fleet.target.kind in WORKLOADS:
            workload = self._view.workloads.get(key)
            if workload is None:
                raise TargetError(
                    Reason.TARGET_NOT_FOUND,
                    f"cannot find {fleet.target.kind} {fleet.target.name} in namespace "
                    f"{fleet.namespace}",
                )
            pods = self._seen_pods(fleet)
            version = (workload.uid, workload.resource_version)
            found = self._discover(fleet, workload, pods, version)
            return self._target(
                fleet,
                pods,
                found,
                replicas=workload.replicas,
                resource_version=workload.resource_version,
                uid=workload.uid,
                is_rolling_out=workload.is_rolling_out,
                creation_failure="" if "pods" in self._view.refused else workload.creation_failure,
            )
        scale = await self.scales.read(fleet)
        self._selectors[fleet.key] = str((scale.get("status") or {}).get("selector") or "")
        pods = self._seen_pods(fleet)
        found = self._discover(fleet, None, pods, ())
        return self._target(
            fleet,
            pods,
            found,
            replicas=int((scale.get("spec") or {}).get("replicas") or 0),
            resource_version=str(scale["metadata"].get("resourceVersion", "")),
            uid=str(scale["metadata"].get("uid", "")),
            is_rolling_out=False,
        )

    async def write_replicas(self, fleet: Fleet, target: Target, replicas: int) -> None:
        """Write a count, if it is still wanted; TargetError if it is not, or cannot be written."""
        await self.scales.write(fleet, target, replicas)

    def _target(
        self,
        fleet: Fleet,
        pods: Sequence[SeenPod],
        found: Discovery,
        *,
        replicas: int,
        resource_version: str,
        uid: str,
        is_rolling_out: bool,
        creation_failure: str = "",
    ) -> Target:
        return Target(
            replicas=replicas,
            resource_version=resource_version,
            uid=uid,
            pods=tuple(seen.pod for seen in pods),
            replica=found.replica,
            replica_unknown_because=found.unknown_because,
            is_rolling_out=is_rolling_out,
            creation_failure=creation_failure,
            conflicts_with=self._conflict(fleet),
        )

    def _conflict(self, fleet: Fleet) -> str:
        key = _key(fleet)
        owner = self._owners.get(key)
        if owner is not None and owner.fleet.uid != fleet.uid:
            return f"{KIND} {owner.fleet.name}"
        return self._view.autoscalers.get(key, "")

    def price_usd_per_hour(self, accelerator: str) -> float | None:
        """Price of one accelerator, profiles included; None if there is none. [USD/h]"""
        if accelerator not in self._prices:
            try:
                self._prices[accelerator] = self.catalog.price_usd_per_hour(accelerator)
            except ManifestError:
                self._prices[accelerator] = None
        return self._prices[accelerator]

    def _discover(
        self,
        fleet: Fleet,
        workload: Workload | None,
        pods: Sequence[SeenPod],
        version: tuple[str, ...],
    ) -> Discovery:
        """Discover anew only if fleet, template or nodes changed."""
        bound = frozenset(seen.node for seen in pods if seen.node)
        known = (fleet.uid, fleet.generation, version, bound)
        if self._found.get(fleet.key, ((), None))[0] != known:
            template = {} if workload is None else workload.template
            names = bound or self._possible_nodes(template)
            self._found[fleet.key] = known, self._discovered(fleet, template, names)
        self.discoveries[fleet.key] = self._found[fleet.key][1]
        return self.discoveries[fleet.key]

    def _discovered(
        self, fleet: Fleet, template: Mapping[str, Any], names: Iterable[str]
    ) -> Discovery:
        nodes = [node for name in sorted(names) if (node := self._accelerator(name)) is not None]
        distinct = {(one.accelerator.name, one.source): one for one in nodes}
        return discover(
            self._objects[fleet.key].replica, template, list(distinct.values()), self.catalog
        )

    def _possible_nodes(self, template: Mapping[str, Any]) -> set[str]:
        """Nodes that the template's node selector allows, if all of them have one accelerator."""
        selector = ((template.get("spec") or {}).get("nodeSelector") or {}).items()
        names = {
            name for name, node in self._view.nodes.items() if selector <= node["labels"].items()
        }
        types = {
            node.accelerator.name for name in names if (node := self._accelerator(name)) is not None
        }
        return names if len(types) == 1 else set()

    def _accelerator(self, name: str) -> NodeAccelerator | None:
        if name not in self._accelerators:
            node = self._view.nodes.get(name)
            try:
                self._accelerators[name] = (
                    None
                    if node is None
                    else accelerator_of_node(self.catalog, node["labels"], node["allocatable"])
                )
            except ObservationError:
                self._accelerators[name] = None  # status says that no node tells its accelerator
        return self._accelerators[name]


def _key(fleet: Fleet) -> Key:
    return fleet.namespace, fleet.target.kind, fleet.target.name
