"""Let the garbage collector follow every kind, those of new CustomResourceDefinitions as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_cluster.controllers.discovery import deletable_resources
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

if TYPE_CHECKING:
    from sim_cluster.api_client import Object
    from sim_cluster.controllers.garbage import GarbageCollector
    from sim_cluster.controllers.view import View

_ALL = "all"


class Kinds:
    """Looks at what the API server has at the start and whenever a definition changes."""

    name = "kinds"

    def __init__(self, view: View, collector: GarbageCollector) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._view = view
        self._collector = collector
        self._followed: set[Resource] = set()
        view.informer(CUSTOM_RESOURCE_DEFINITIONS).on_change(self._changed)
        self.queue.add(_ALL)

    async def reconcile(self, key: str) -> None:
        """Start to follow kinds that are new, and stop for those that are gone."""
        _ = key  # there is one
        served = set(await deletable_resources(self._view.client))
        for resource in self._followed - served:
            self._collector.forget(resource)
            self._view.stop(resource)
        self._followed &= served
        for resource in sorted(served - self._followed, key=lambda each: each.path()):
            self._followed.add(resource)
            self._collector.follow(resource, self._view.start(resource))

    def _changed(self, before: Object | None, after: Object | None) -> None:
        if before is None or after is None or before.get("status") != after.get("status"):
            self.queue.add(_ALL)
