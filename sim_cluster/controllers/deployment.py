"""Deployment: one ReplicaSet for each version of its template, exchanged step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster.api_client import ApiError
from sim_cluster.controllers import deployment_status, rollout, versions
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import controller_of, is_finished, is_terminating
from sim_cluster.resources import DEPLOYMENTS, PODS, REPLICA_SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object
    from sim_cluster.controllers.index import Index
    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Key


class Deployments:
    """Creates ReplicaSets and sizes them."""

    name = "deployment"

    def __init__(self, view: View, sets_by_owner: Index[str]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._view = view
        self._sets_by_owner = sets_by_owner
        view.informer(DEPLOYMENTS).on_change(self._changed)
        view.informer(REPLICA_SETS).on_change(self._set_changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        """Take the next step of the rollout that is safe now, then write `status`."""
        deployment = self._view.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        if not is_terminating(deployment):
            await self._step(deployment)
        await self._write_status(key)

    async def _step(self, deployment: Object) -> None:
        sets = self._sets(deployment)
        new = versions.newest(deployment, sets)
        bounds = versions.bounds(deployment)
        if deployment["spec"].get("paused") or versions.was_scaled(deployment, sets):
            await self._scale(deployment, sets, bounds, new)
            return
        old = [each for each in sets if each is not new]
        if versions.strategy(deployment) == "Recreate":
            await self._recreate(deployment, new, old, bounds)
            return
        if new is None:
            held = sum(versions.size(each).replicas for each in old)
            first = min(bounds.replicas, max(0, bounds.maximum - held))
            await self._create(deployment, sets, first, bounds)
            return
        await self._revise(deployment, new, sets)
        grown = rollout.grow_new(versions.size(new), [versions.size(each) for each in old], bounds)
        if grown != versions.size(new).replicas:
            await self._resize(deployment, new, grown, bounds)
            return
        sizes = rollout.shrink_old(
            versions.size(new), [versions.size(each) for each in old], bounds
        )
        for each in old:
            await self._resize(deployment, each, sizes[each["metadata"]["name"]], bounds)
        await self._forget_history(deployment, old)

    async def _scale(
        self, deployment: Object, sets: Sequence[Object], bounds: rollout.Bounds, new: Object | None
    ) -> None:
        """Keep the shares of all versions while the total changes."""
        active = [each for each in sets if versions.size(each).replicas > 0]
        if not active and new is not None:
            await self._resize(deployment, new, bounds.replicas, bounds)
            return
        if versions.strategy(deployment) == "Recreate" and len(active) > 1:
            return
        sizes = rollout.spread([versions.size(each) for each in active], bounds)
        for each in active:
            await self._resize(deployment, each, sizes[each["metadata"]["name"]], bounds)

    async def _recreate(
        self, deployment: Object, new: Object | None, old: Sequence[Object], bounds: rollout.Bounds
    ) -> None:
        """Empty the old sets, wait until their last pod is gone, and only then start anew."""
        for each in old:
            await self._resize(deployment, each, 0, bounds)
        remaining = (
            pod
            for each in old
            for pod in self._view.pods_by_owner[each["metadata"]["uid"]].values()
            if not is_finished(pod)
        )
        if any(remaining):
            return
        if new is None:
            await self._create(deployment, old, bounds.replicas, bounds)
            return
        await self._revise(deployment, new, [*old, new])
        await self._resize(deployment, new, bounds.replicas, bounds)
        await self._forget_history(deployment, old)

    async def _create(
        self, deployment: Object, sets: Sequence[Object], replicas: int, bounds: rollout.Bounds
    ) -> None:
        collisions = int((deployment.get("status") or {}).get("collisionCount") or 0)
        revision = versions.last_revision(sets) + 1
        body = versions.replica_set(deployment, replicas, bounds, revision, collisions)
        try:
            made = await self._view.create(REPLICA_SETS, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            await self._view.patch(
                DEPLOYMENTS,
                key_of(deployment),
                {"status": {"collisionCount": collisions + 1}},
                subresource="status",
            )
            raise
        self._tell(
            deployment, f"Scaled up replica set {made['metadata']['name']} from 0 to {replicas}"
        )
        await self._set_revision(deployment, revision)

    async def _revise(self, deployment: Object, new: Object, sets: Sequence[Object]) -> None:
        """Give the newest set the highest revision: an undo makes an old set the newest again."""
        highest = versions.last_revision([each for each in sets if each is not new])
        revision = max(versions.revision(new), highest + 1)
        if revision != versions.revision(new):
            changes = {"metadata": {"annotations": {versions.REVISION: str(revision)}}}
            await self._view.patch(REPLICA_SETS, key_of(new), changes)
        await self._set_revision(deployment, revision)

    async def _set_revision(self, deployment: Object, revision: int) -> None:
        if versions.revision(deployment) != revision:
            changes = {"metadata": {"annotations": {versions.REVISION: str(revision)}}}
            # Through `status`, because annotations written the other way count as a new generation.
            await self._view.patch(DEPLOYMENTS, key_of(deployment), changes, subresource="status")

    async def _resize(
        self, deployment: Object, each: Object, replicas: int, bounds: rollout.Bounds
    ) -> None:
        before = versions.size(each).replicas
        annotations = versions.planned(bounds)
        known = each["metadata"].get("annotations") or {}
        if before == replicas and annotations.items() <= known.items():
            return
        changes = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
        await self._view.patch(REPLICA_SETS, key_of(each), changes)
        if before != replicas:
            direction = "up" if replicas > before else "down"
            name = each["metadata"]["name"]
            self._tell(
                deployment, f"Scaled {direction} replica set {name} from {before} to {replicas}"
            )

    async def _forget_history(self, deployment: Object, old: Sequence[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit")
        empty = [each for each in old if versions.is_empty(each)]
        excess = len(empty) - (10 if limit is None else int(limit))
        for each in sorted(empty, key=versions.revision)[: max(0, excess)]:
            await self._view.client.delete(REPLICA_SETS, *key_of(each))

    async def _write_status(self, key: Key) -> None:
        deployment = self._view.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        sets = self._sets(deployment)
        new = versions.newest(deployment, sets)
        status = deployment_status.counts(deployment, new, sets)
        status["conditions"] = deployment_status.conditions(
            deployment, new, status, min_available=versions.bounds(deployment).min_available
        )
        old = deployment.get("status") or {}
        if any(old.get(name) != value for name, value in status.items()):
            await self._view.patch(DEPLOYMENTS, key, {"status": status}, subresource="status")
        if not deployment_status.is_complete(deployment, status):
            self.queue.add_after(key, self._until_deadline_s(deployment, status))

    def _until_deadline_s(self, deployment: Object, status: dict[str, Any]) -> float:
        progressing = next(each for each in status["conditions"] if each["type"] == "Progressing")
        return max(1.0, deployment_status.remaining_s(deployment, progressing))

    def _sets(self, deployment: Object) -> list[Object]:
        return list(self._sets_by_owner[deployment["metadata"]["uid"]].values())

    def _tell(self, deployment: Object, message: str) -> None:
        self._view.record(deployment, DEPLOYMENTS, "ScalingReplicaSet", message)

    def _changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(key_of(after))

    def _set_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before
        owner = controller_of(item) if item is not None else None
        if item is not None and owner is not None and owner["kind"] == DEPLOYMENTS.kind:
            self.queue.add((key_of(item)[0], owner["name"]))

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        """Look again when a pod is gone: it may be the last one that a Recreate waits for."""
        if before is None or after is not None:
            return
        owner = controller_of(before)
        if owner is not None and owner["kind"] == REPLICA_SETS.kind:
            each = self._view.get(REPLICA_SETS, (key_of(before)[0], owner["name"]))
            self._set_changed(each, each)
