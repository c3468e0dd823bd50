"""StatefulSet: pods with names that last, started and replaced in order."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from sim_cluster.controllers import ordinals
from sim_cluster.controllers.claims import claimed_pods
from sim_cluster.controllers.index import Index
from sim_cluster.controllers.ordinals import REVISION_LABEL, Replica
from sim_cluster.controllers.pod_template import hash_of
from sim_cluster.controllers.stateful_status import status_of
from sim_cluster.controllers.view import owner_terms, reference_to
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import controller_of, is_available, is_finished, is_terminating
from sim_cluster.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from sim_cluster.selectors import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object
    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Key

_GATHER_S = 0.03


class StatefulSets:
    """Keeps pods 0 to n-1; `volumeClaimTemplates` are refused with an event."""

    name = "statefulset"

    def __init__(self, view: View) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._view = view
        self._revisions: Index[str] = Index(view.informer(CONTROLLER_REVISIONS), owner_terms)
        view.informer(STATEFUL_SETS).on_change(self._changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        """Take the next steps that the order allows, then write `status`."""
        owner = self._view.get(STATEFUL_SETS, key)
        if owner is None:
            return
        if owner["spec"].get("volumeClaimTemplates"):
            message = "spec.volumeClaimTemplates must be empty in the simulated cluster"
            self._view.record(owner, STATEFUL_SETS, "FailedCreate", message, kind="Warning")
            return
        pods = await claimed_pods(self._view, owner, STATEFUL_SETS)
        update = await self._revision_of(owner)
        current = (owner.get("status") or {}).get("currentRevision") or update
        if not is_terminating(owner):
            await self._step(owner, pods, current=current, update=update)
        await self._write_status(key, current=current, update=update)

    async def _step(
        self, owner: Object, pods: Sequence[Object], *, current: str, update: str
    ) -> None:
        replicas = [self._replica(owner, pod) for pod in pods]
        plan = ordinals.plan(owner, replicas, current=current, update=update)
        for ordinal, revision in plan.create:
            await self._create(owner, ordinal, revision)
        going = [pod for pod in pods if pod["metadata"]["name"] in plan.delete]
        await asyncio.gather(*(self._delete(owner, pod) for pod in going))

    def _replica(self, owner: Object, pod: Object) -> Replica:
        min_ready_s = float(owner["spec"].get("minReadySeconds") or 0)
        return Replica(
            name=pod["metadata"]["name"],
            revision=labels_of(pod).get(REVISION_LABEL, ""),
            is_available=is_available(pod, min_ready_s=min_ready_s, now_s=time.time()),
            is_going=self._view.is_going(pod),
            is_finished=is_finished(pod),
        )

    async def _create(self, owner: Object, ordinal: int, revision: str) -> None:
        template = self._template(owner, revision)
        pod = await self._view.create(
            PODS, ordinals.pod_at(owner, template, ordinal=ordinal, revision=revision)
        )
        name, set_name = pod["metadata"]["name"], owner["metadata"]["name"]
        message = f"Create Pod {name} in StatefulSet {set_name} successful"
        self._view.record(owner, STATEFUL_SETS, "SuccessfulCreate", message)

    async def _delete(self, owner: Object, pod: Object) -> None:
        await self._view.delete_pod(pod)
        name, set_name = pod["metadata"]["name"], owner["metadata"]["name"]
        message = f"Delete Pod {name} in StatefulSet {set_name} successful"
        self._view.record(owner, STATEFUL_SETS, "SuccessfulDelete", message)

    def _template(self, owner: Object, revision: str) -> Object:
        for each in self._revisions[owner["metadata"]["uid"]].values():
            if each["metadata"]["name"] == revision:
                template = dict(each["data"]["spec"]["template"])
                template.pop("$patch", None)
                return template
        return dict(owner["spec"]["template"])

    async def _revision_of(self, owner: Object) -> str:
        """Find the revision that holds the present template, or make it; an undo renumbers it."""
        template = {"$patch": "replace", **owner["spec"]["template"]}
        known = list(self._revisions[owner["metadata"]["uid"]].values())
        highest = max((int(each["revision"]) for each in known), default=0)
        for each in known:
            if each["data"]["spec"]["template"] == template:
                if each["revision"] != highest:
                    await self._view.patch(
                        CONTROLLER_REVISIONS, key_of(each), {"revision": highest + 1}
                    )
                return str(each["metadata"]["name"])
        name = f"{owner['metadata']['name']}-{hash_of(owner['spec']['template'])}"
        body = {
            "metadata": {
                "name": name,
                "namespace": owner["metadata"]["namespace"],
                "labels": dict(owner["spec"]["selector"].get("matchLabels") or {}),
                "ownerReferences": [dict(reference_to(owner, STATEFUL_SETS))],
            },
            "data": {"spec": {"template": template}},
            "revision": highest + 1,
        }
        await self._view.create(CONTROLLER_REVISIONS, body)
        return name

    async def _write_status(self, key: Key, *, current: str, update: str) -> None:
        owner = self._view.get(STATEFUL_SETS, key)
        if owner is None:
            return
        pods = [
            pod
            for pod in self._view.pods_by_owner[owner["metadata"]["uid"]].values()
            if not is_finished(pod)
        ]
        status = status_of(owner, pods, current=current, update=update, now_s=time.time())
        old = owner.get("status") or {}
        if any(old.get(name) != value for name, value in status.items()):
            await self._view.patch(STATEFUL_SETS, key, {"status": status}, subresource="status")
            self.queue.add_after(key, _GATHER_S)
        if (status["availableReplicas"] or 0) < (status["readyReplicas"] or 0):
            self.queue.add_after(key, 1.0)  # readiness ripens: spec.minReadySeconds

    def _changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(key_of(after))

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        for pod in (before, after):
            owner = controller_of(pod) if pod else None
            if pod and owner and owner["kind"] == STATEFUL_SETS.kind:
                self.queue.add_after((key_of(pod)[0], owner["name"]), _GATHER_S)
