"""What all controllers share: one copy of the cluster, one way to write to it, one voice."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any

from sim_cluster import times
from sim_cluster.api_client import MERGE_PATCH, ApiClient, ApiError, Object
from sim_cluster.controllers.index import Index
from sim_cluster.informer import Informer, Key, key_of, wait_until_synced
from sim_cluster.pods import controller_of, is_terminating, node_name
from sim_cluster.resources import EVENTS, PODS, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LOG = logging.getLogger(__name__)
_EVENTS_WAITING = 2000


class View:
    """The controllers' copy of the cluster; their own writes show up in it at once."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._informers: dict[Resource, Informer] = {}
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._events: asyncio.Queue[Object] = asyncio.Queue(_EVENTS_WAITING)
        self._doomed: set[str] = set()
        pods = self.informer(PODS)
        pods.on_change(self._forget_doomed)
        self.pods_by_owner: Index[str] = Index(pods, owner_terms)
        self.orphan_pods: Index[str] = Index(pods, _orphan_terms)
        self.pods_by_node: Index[str] = Index(pods, _node_terms)

    def informer(self, resource: Resource) -> Informer:
        """Share one copy of a collection; it starts with `run`."""
        if resource not in self._informers:
            self._informers[resource] = Informer(self.client, resource)
        return self._informers[resource]

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Look an object up in the copy."""
        return self.informer(resource).objects.get(key)

    def is_going(self, pod: Object) -> bool:
        """Whether a pod's deletion has been asked for, even if the watch does not show it yet."""
        return is_terminating(pod) or pod["metadata"]["uid"] in self._doomed

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create an object and see it at once."""
        made = await self.client.create(resource, body)
        self.informer(resource).observe(made)
        return made

    async def patch(
        self, resource: Resource, key: Key, body: Any, *, subresource: str | None = None
    ) -> Object:
        """Merge fields into an object and see the result at once."""
        namespace, name = key
        made = await self.client.patch(
            resource,
            namespace or None,
            name,
            body,
            subresource=subresource,
            content_type=MERGE_PATCH,
        )
        self.informer(resource).observe(made)
        return made

    async def delete_pod(self, pod: Object) -> None:
        """Delete exactly this pod (by uid), with its own grace period."""
        namespace, name = key_of(pod)
        uid = pod["metadata"]["uid"]
        self._doomed.add(uid)
        try:
            await self.client.delete(PODS, namespace, name, options={"preconditions": {"uid": uid}})
        except ApiError as error:
            self._doomed.discard(uid)
            if error.status != 409:  # another pod has its name by now
                raise

    def record(
        self, about: Object, resource: Resource, reason: str, message: str, *, kind: str = "Normal"
    ) -> None:
        """Write an Event soon about an object."""
        self.send(event_about(about, resource, reason, message, kind))

    def send(self, event: Object) -> None:
        """Write an Event soon; dropped when too many wait, as Kubernetes' own recorder does."""
        with contextlib.suppress(asyncio.QueueFull):
            self._events.put_nowait(event)

    async def run(self) -> None:
        """Keep the copy and write the events until cancelled."""
        try:
            for resource in tuple(self._informers):
                self.start(resource)
            while True:
                await self._write_event(await self._events.get())
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    def start(self, resource: Resource) -> Informer:
        """Keep a collection's copy from now on, if that has not been so."""
        informer = self.informer(resource)
        if resource not in self._running:
            self._running[resource] = asyncio.create_task(informer.run())
        return informer

    def stop(self, resource: Resource) -> None:
        """Give a collection up that is not served any more."""
        self._informers.pop(resource, None)
        task = self._running.pop(resource, None)
        if task is not None:
            task.cancel()

    async def synced(self) -> None:
        """Wait until every collection has been listed once."""
        await wait_until_synced(self._informers.values())

    async def _write_event(self, event: Object) -> None:
        try:
            await self.client.create(EVENTS, event)
        except (ApiError, OSError, TimeoutError) as error:
            _LOG.debug("event %s dropped: %s", event["reason"], error)

    def _forget_doomed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and (after is None or is_terminating(after)):
            self._doomed.discard(before["metadata"]["uid"])


def event_about(about: Object, resource: Resource, reason: str, message: str, kind: str) -> Object:
    """Compose an Event in the form that recorders of `events.k8s.io` leave in `v1`."""
    metadata = about["metadata"]
    namespace = metadata.get("namespace") or "default"
    return {
        "metadata": {"name": f"{metadata['name']}.{time.time_ns():x}", "namespace": namespace},
        "involvedObject": {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "eventTime": times.now_micro(),
        "action": reason,
        "reportingComponent": "sim-cluster",
        "reportingInstance": "sim-cluster",
        "firstTimestamp": None,
        "lastTimestamp": None,
    }


def owner_terms(item: Object) -> Iterable[str]:
    """Read the uid of the controller that owns an object."""
    owner = controller_of(item)
    return () if owner is None else (owner["uid"],)


def reference_to(owner: Object, resource: Resource) -> Mapping[str, Any]:
    """Compose the owner reference that a controller sets on what it makes."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _orphan_terms(pod: Object) -> Iterable[str]:
    return (pod["metadata"].get("namespace", ""),) if controller_of(pod) is None else ()


def _node_terms(pod: Object) -> Iterable[str]:
    node = node_name(pod)
    return () if node is None else (node,)
