"""ReplicaSet: as many pods as asked for."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from sim_cluster.api_client import ApiError
from sim_cluster.controllers import replica_status, victims
from sim_cluster.controllers.claims import claimed_pods
from sim_cluster.controllers.pod_template import pod_of
from sim_cluster.controllers.view import owner_terms
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import controller_of, is_finished, is_terminating
from sim_cluster.resources import PODS, REPLICA_SETS
from sim_cluster.selectors import labels_of, matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object
    from sim_cluster.controllers.index import Index
    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Key

_LARGEST_BATCH = 500
# Pod events come in crowds; one look a moment later sees them all.
_GATHER_S = 0.03


class ReplicaSets:
    """Creates and deletes pods, and counts them in `status`."""

    name = "replicaset"

    def __init__(self, view: View, sets_by_owner: Index[str]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._view = view
        self._sets_by_owner = sets_by_owner
        self._keys_by_uid: dict[str, Key] = {}
        view.informer(REPLICA_SETS).on_change(self._set_changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        """Bring the number of pods to `spec.replicas`, and `status` to the number of pods."""
        owner = self._view.get(REPLICA_SETS, key)
        if owner is None:
            return
        pods = await claimed_pods(self._view, owner, REPLICA_SETS)
        active = [pod for pod in pods if not is_finished(pod) and not self._view.is_going(pod)]
        failure = None
        if not is_terminating(owner):
            failure = await self._scale(owner, active)
        await self._count(key, failure)

    async def _scale(self, owner: Object, active: Sequence[Object]) -> ApiError | None:
        missing = int(owner["spec"].get("replicas", 1)) - len(active)
        if missing > 0:
            return await self._create(owner, min(missing, _LARGEST_BATCH))
        if missing < 0:
            relatives = self._relatives(owner) or active
            chosen = victims.choose(active, -missing, relatives=relatives, now_s=time.time())
            await asyncio.gather(*(self._delete(owner, pod) for pod in chosen))
        return None

    async def _create(self, owner: Object, count: int) -> ApiError | None:
        """Create in growing batches, so that a quota is run into once and not a hundred times."""
        batch = 1
        while count > 0:
            made = await asyncio.gather(
                *(self._create_one(owner) for _ in range(min(batch, count))),
                return_exceptions=True,
            )
            for outcome in made:
                if isinstance(outcome, ApiError) and outcome.status in {403, 422}:
                    message = f"Error creating: {outcome.message}"
                    self._view.record(owner, REPLICA_SETS, "FailedCreate", message, kind="Warning")
                    self.queue.failed(key_of(owner))
                    return outcome
                if isinstance(outcome, BaseException):
                    raise outcome
            count -= batch
            batch *= 2
        return None

    async def _create_one(self, owner: Object) -> None:
        body = pod_of(owner["spec"]["template"], owner, REPLICA_SETS)
        body["metadata"]["generateName"] = f"{owner['metadata']['name']}-"
        pod = await self._view.create(PODS, body)
        self._view.record(
            owner, REPLICA_SETS, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}"
        )

    async def _delete(self, owner: Object, pod: Object) -> None:
        await self._view.delete_pod(pod)
        name = pod["metadata"]["name"]
        self._view.record(owner, REPLICA_SETS, "SuccessfulDelete", f"Deleted pod: {name}")

    def _relatives(self, owner: Object) -> list[Object]:
        """All active pods of the Deployment, whichever ReplicaSet they are from."""
        above = controller_of(owner)
        sets = self._sets_by_owner[above["uid"]].values() if above else [owner]
        return [
            pod
            for each in sets
            for pod in self._view.pods_by_owner[each["metadata"]["uid"]].values()
            if not is_finished(pod) and not self._view.is_going(pod)
        ]

    async def _count(self, key: Key, failure: ApiError | None) -> None:
        owner = self._view.get(REPLICA_SETS, key)
        if owner is None:
            return
        pods = list(self._view.pods_by_owner[owner["metadata"]["uid"]].values())
        status = replica_status.status_of(
            owner,
            active=[pod for pod in pods if not is_finished(pod) and not self._view.is_going(pod)],
            going=sum(self._view.is_going(pod) and not is_finished(pod) for pod in pods),
            failure=None if failure is None else failure.message,
            now_s=time.time(),
        )
        old = owner.get("status") or {}
        if any(old.get(name) != value for name, value in status.items()):
            await self._view.patch(REPLICA_SETS, key, {"status": status}, subresource="status")
        if status["availableReplicas"] < status["readyReplicas"]:
            self.queue.add_after(key, 1.0)  # readiness ripens: spec.minReadySeconds

    def _set_changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self._keys_by_uid[after["metadata"]["uid"]] = key_of(after)
            self.queue.add(key_of(after))
        elif before is not None:
            self._keys_by_uid.pop(before["metadata"]["uid"], None)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        for uid in {uid for pod in (before, after) if pod for uid in owner_terms(pod)}:
            if uid in self._keys_by_uid:
                self.queue.add_after(self._keys_by_uid[uid], _GATHER_S)
        if after is not None and controller_of(after) is None:
            self._offer(after)

    def _offer(self, orphan: Object) -> None:
        """Have the ReplicaSets looked at that might adopt a pod without a controller."""
        namespace, labels = orphan["metadata"]["namespace"], labels_of(orphan)
        for key, each in self._view.informer(REPLICA_SETS).objects.items():
            if key[0] == namespace and matches(each["spec"]["selector"], labels):
                self.queue.add(key)
