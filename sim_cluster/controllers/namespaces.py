"""Namespace deletion: first everything inside, then the namespace itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sim_cluster.controllers.discovery import deletable_resources
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.pods import is_terminating
from sim_cluster.resources import EVENTS, NAMESPACES

if TYPE_CHECKING:
    from sim_cluster.api_client import Object
    from sim_cluster.controllers.view import View

_LOOK_AGAIN_S = 0.2
_FINALIZER = "kubernetes"


class Namespaces:
    """Empties namespaces that are being deleted, and lets them go when they are empty."""

    name = "namespace"

    def __init__(self, view: View) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._view = view
        view.informer(NAMESPACES).on_change(self._changed)

    async def reconcile(self, key: str) -> None:
        """Delete all content; remove the namespace's finalizer once a list of it is empty."""
        namespace = self._view.get(NAMESPACES, ("", key))
        if namespace is None or not is_terminating(namespace):
            return
        if _FINALIZER not in (namespace["spec"].get("finalizers") or ()):
            return
        if await self._empty(key) > 0:
            self.queue.add_after(key, _LOOK_AGAIN_S)
            return
        spec = namespace["spec"]
        left = [each for each in spec["finalizers"] if each != _FINALIZER]
        body = {**namespace, "spec": {**spec, "finalizers": left}}
        await self._view.client.replace(NAMESPACES, body, subresource="finalize")

    async def _empty(self, namespace: str) -> int:
        """Ask for the deletion of everything inside and count what is still there."""
        client, left = self._view.client, 0
        options = {"propagationPolicy": "Background"}
        for resource in [*await deletable_resources(client), EVENTS]:
            if not resource.namespaced:
                continue
            items, _ = await client.list(resource, namespace)
            left += len(items)
            staying = [item["metadata"]["name"] for item in items if not is_terminating(item)]
            await asyncio.gather(
                *(client.delete(resource, namespace, name, options=options) for name in staying)
            )
        return left

    def _changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None and is_terminating(after):
            self.queue.add(after["metadata"]["name"])
