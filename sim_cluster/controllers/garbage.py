"""Garbage collection: what belongs to nobody any more is deleted.

An object goes when all of its owners are gone (background). With `foregroundDeletion` the owner
waits for those that block it; with `orphan` its dependents are freed first. Both are finalizers
that the API server sets on delete and that are removed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster.api_client import ApiError, Object
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import is_terminating

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Informer, Key
    from sim_cluster.resources import Resource

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"

Node = tuple["Resource", "Key"]


class GarbageCollector:
    """Follows every kind that it is told of; keys are uids of objects to look at."""

    name = "garbage"

    def __init__(self, view: View) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._view = view
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._absent: set[str] = set()

    def follow(self, resource: Resource, informer: Informer) -> None:
        """Take a kind into the graph; its informer may already have content."""
        self._resources[resource.group, resource.kind] = resource

        def changed(before: Object | None, after: Object | None) -> None:
            self._changed(resource, before, after)

        for item in informer.objects.values():
            changed(None, item)
        informer.on_change(changed)

    def forget(self, resource: Resource) -> None:
        """Drop a kind that is not served any more, with all its objects."""
        self._resources.pop((resource.group, resource.kind), None)
        for uid in [uid for uid, (kind, _) in self._nodes.items() if kind == resource]:
            del self._nodes[uid]

    async def reconcile(self, key: str) -> None:
        """Look at one object: are its owners there, and does its own deletion wait for us?"""
        item = self._object(key)
        if item is None:
            return
        finalizers = item["metadata"].get("finalizers") or ()
        if is_terminating(item):
            if ORPHAN in finalizers:
                await self._orphan_dependents(key, item)
            elif FOREGROUND in finalizers:
                await self._delete_dependents(key, item)
            return
        if item["metadata"].get("ownerReferences"):
            await self._judge(key, item)

    async def _judge(self, uid: str, item: Object) -> None:
        """Delete an object without any owner left; else only forget the owners that are gone."""
        references = item["metadata"]["ownerReferences"]
        present = [each for each in references if await self._exists(item, each)]
        waiting = [each for each in present if self._waits_for_dependents(each["uid"])]
        if len(present) == len(waiting):
            blocking = waiting and self._dependents.get(uid)
            await self._delete(uid, item, "Foreground" if blocking else "Background")
        elif len(present) < len(references):
            await self._set_owners(uid, item, present)

    async def _exists(self, item: Object, reference: Mapping[str, Any]) -> bool:
        """Ask our copy first, and the API server itself before anything is called absent."""
        uid = reference["uid"]
        if uid in self._nodes:
            return True
        if uid in self._absent:
            return False
        group = reference["apiVersion"].rpartition("/")[0]
        resource = self._resources.get((group, reference["kind"]))
        if resource is None:
            return True  # a kind that we do not know: nothing is deleted on a guess
        namespace = key_of(item)[0] if resource.namespaced else None
        live = await self._view.client.find(resource, namespace, reference["name"])
        if live is not None and live["metadata"]["uid"] == uid:
            return True
        self._absent.add(uid)
        return False

    def _waits_for_dependents(self, uid: str) -> bool:
        owner = self._object(uid)
        if owner is None or not is_terminating(owner):
            return False
        return FOREGROUND in (owner["metadata"].get("finalizers") or ())

    async def _delete_dependents(self, uid: str, owner: Object) -> None:
        """Have the dependents go; when none is left that blocks, let the owner go."""
        dependents = [self._object(each) for each in self._dependents.get(uid, ())]
        blocking = [each for each in dependents if each is not None and _blocks(each, uid)]
        if not blocking:
            await self._remove_finalizer(uid, owner, FOREGROUND)
            return
        for each in dependents:
            if each is not None:
                self.queue.add(each["metadata"]["uid"])

    async def _orphan_dependents(self, uid: str, owner: Object) -> None:
        for each in tuple(self._dependents.get(uid, ())):
            dependent = self._object(each)
            if dependent is not None:
                references = dependent["metadata"].get("ownerReferences") or ()
                others = [reference for reference in references if reference["uid"] != uid]
                await self._set_owners(each, dependent, others)
        await self._remove_finalizer(uid, owner, ORPHAN)

    async def _delete(self, uid: str, item: Object, policy: str) -> None:
        resource, (namespace, name) = self._nodes[uid]
        options = {"preconditions": {"uid": item["metadata"]["uid"]}, "propagationPolicy": policy}
        try:
            await self._view.client.delete(resource, namespace or None, name, options=options)
        except ApiError as error:
            if error.status != 409:  # another object has its name by now
                raise

    async def _set_owners(self, uid: str, item: Object, references: Iterable[Object]) -> None:
        metadata = {"uid": item["metadata"]["uid"], "ownerReferences": list(references) or None}
        await self._patch(uid, metadata)

    async def _remove_finalizer(self, uid: str, item: Object, finalizer: str) -> None:
        left = [each for each in item["metadata"]["finalizers"] if each != finalizer]
        version = item["metadata"]["resourceVersion"]
        await self._patch(uid, {"resourceVersion": version, "finalizers": left or None})

    async def _patch(self, uid: str, metadata: Mapping[str, Any]) -> None:
        resource, (namespace, name) = self._nodes[uid]
        try:
            await self._view.client.patch(
                resource, namespace or None, name, {"metadata": dict(metadata)}
            )
        except ApiError as error:
            if error.status != 404:
                raise

    def _object(self, uid: str) -> Object | None:
        node = self._nodes.get(uid)
        return None if node is None else self._view.get(*node)

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if before is not None and (
            after is None or before["metadata"]["uid"] != after["metadata"]["uid"]
        ):
            self._gone(before)
            before = None
        if after is None:
            return
        uid = after["metadata"]["uid"]
        self._nodes[uid] = (resource, key_of(after))
        old, new = _owners(before), _owners(after)
        for owner in old - new:
            self._dependents.get(owner, set()).discard(uid)
            self.queue.add(owner)
        for owner in new - old:
            self._dependents.setdefault(owner, set()).add(uid)
        orphaned = any(owner not in self._nodes for owner in new)
        if orphaned or is_terminating(after):
            self.queue.add(uid)

    def _gone(self, item: Object) -> None:
        uid = item["metadata"]["uid"]
        self._nodes.pop(uid, None)
        for owner in _owners(item):
            dependents = self._dependents.get(owner, set())
            dependents.discard(uid)
            self.queue.add(owner)
            if not dependents:
                self._dependents.pop(owner, None)
        for dependent in self._dependents.get(uid, ()):
            self._absent.add(uid)
            self.queue.add(dependent)


def _owners(item: Object | None) -> set[str]:
    references = (item["metadata"].get("ownerReferences") or ()) if item else ()
    return {reference["uid"] for reference in references}


def _blocks(item: Object, owner_uid: str) -> bool:
    return any(
        reference["uid"] == owner_uid and reference.get("blockOwnerDeletion")
        for reference in item["metadata"].get("ownerReferences") or ()
    )
