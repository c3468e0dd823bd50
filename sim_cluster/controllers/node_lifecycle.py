"""Nodes that fall silent or vanish: what happens to them and to their pods.

A node whose lease was not renewed for 50 s is not ready, its pods are not ready, and it is tainted
`unreachable`; pods that tolerate that for a while only (300 s by default) are deleted afterwards.
Pods of a node that does not exist any more are removed after 40 s. The times are the defaults of
kube-controller-manager (`--node-monitor-grace-period`, DefaultTolerationSeconds, pod GC).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sim_cluster import times
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import condition, is_ready, is_terminating, node_name
from sim_cluster.resources import LEASES, NODES, PODS

if TYPE_CHECKING:
    from sim_cluster.api_client import Object
    from sim_cluster.controllers.view import View

GRACE_S = 50.0
EVICTION_S = 300.0
VANISHED_S = 40.0
_LOOK_S = 5.0
_LEASE_NAMESPACE = "kube-node-lease"
UNREACHABLE = "node.kubernetes.io/unreachable"


class NodeLifecycle:
    """Looks at each node with a lease every few seconds; keys are names of nodes."""

    name = "node-lifecycle"

    def __init__(
        self,
        view: View,
        *,
        grace_s: float = GRACE_S,
        eviction_s: float = EVICTION_S,
        vanished_s: float = VANISHED_S,
    ) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._view = view
        self._grace_s = grace_s
        self._eviction_s = eviction_s
        self._vanished_s = vanished_s
        self._look_s = min(_LOOK_S, grace_s / 5, vanished_s / 5)
        self._gone_since_s: dict[str, float] = {}
        view.informer(LEASES).on_change(self._lease_changed)
        view.informer(NODES).on_change(self._node_changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: str) -> None:
        """Judge one node by its lease, or clear up after one that is gone."""
        node = self._view.get(NODES, ("", key))
        if node is None:
            await self._clear_up(key)
            return
        self._gone_since_s.pop(key, None)
        silent_s = self._silent_s(key)
        if silent_s is None:
            return
        if silent_s > self._grace_s:
            await self._give_up(node, silent_s)
        elif _is_tainted(node) and is_ready(node):
            await self._set_taints(node, _without_ours(node))
        self.queue.add_after(key, self._look_s)

    def _silent_s(self, name: str) -> float | None:
        lease = self._view.get(LEASES, (_LEASE_NAMESPACE, name))
        renewed = (lease or {"spec": {}})["spec"].get("renewTime")
        return None if renewed is None else time.time() - times.parse(renewed)

    async def _give_up(self, node: Object, silent_s: float) -> None:
        name = node["metadata"]["name"]
        ready = condition(node, "Ready")
        if ready is not None and ready["status"] != "Unknown":
            await self._set_ready(NODES, node, "Unknown", "NodeStatusUnknown")
            self._view.record(
                node, NODES, "NodeNotReady", f"Node {name} status is now: NodeNotReady"
            )
        if not _is_tainted(node):
            effects = ("NoSchedule", "NoExecute")
            ours = [{"key": UNREACHABLE, "effect": each} for each in effects]
            await self._set_taints(node, [*_without_ours(node), *ours])
        for pod in list(self._view.pods_by_node[name].values()):
            if is_ready(pod):
                await self._set_ready(PODS, pod, "False", "NodeNotReady")
            if silent_s > self._grace_s + self._eviction_s and not self._view.is_going(pod):
                await self._view.delete_pod(pod)

    async def _clear_up(self, name: str) -> None:
        """Remove the pods of a node that has been gone for long enough."""
        pods = list(self._view.pods_by_node[name].values())
        if not pods:
            self._gone_since_s.pop(name, None)
            return
        since_s = self._gone_since_s.setdefault(name, time.monotonic())
        if time.monotonic() - since_s < self._vanished_s:
            self.queue.add_after(name, self._look_s)
            return
        for pod in pods:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            await self._view.client.delete(PODS, *key_of(pod), options=options)

    async def _set_ready(self, resource: Any, item: Object, status: str, reason: str) -> None:
        entry = {**(condition(item, "Ready") or {"type": "Ready"}), "status": status}
        entry |= {"reason": reason, "lastTransitionTime": times.now()}
        entry["message"] = "Kubelet stopped posting node status." if resource == NODES else ""
        others = [each for each in item["status"]["conditions"] if each["type"] != "Ready"]
        changes = {"status": {"conditions": [*others, entry]}}
        await self._view.patch(resource, key_of(item), changes, subresource="status")

    async def _set_taints(self, node: Object, taints: list[Any]) -> None:
        await self._view.patch(NODES, key_of(node), {"spec": {"taints": taints or None}})

    def _node_changed(self, before: Object | None, after: Object | None) -> None:
        node = after or before
        if node is not None and (before is None or after is None or is_ready(node)):
            self.queue.add(node["metadata"]["name"])

    def _lease_changed(self, before: Object | None, after: Object | None) -> None:
        if before is None and after is not None and key_of(after)[0] == _LEASE_NAMESPACE:
            self.queue.add(key_of(after)[1])

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        """Take note of pods on nodes that do not exist."""
        if before is None and after is not None and not is_terminating(after):
            name = node_name(after)
            if name is not None and self._view.get(NODES, ("", name)) is None:
                self.queue.add(name)


def _is_tainted(node: Object) -> bool:
    return len(_without_ours(node)) < len(node["spec"].get("taints") or ())


def _without_ours(node: Object) -> list[Any]:
    return [each for each in node["spec"].get("taints") or () if each["key"] != UNREACHABLE]
