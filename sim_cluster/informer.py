"""A local copy of a collection, kept up to date by list and watch.

A watch resumes from the last resourceVersion seen (bookmarks move it along); a 410 or any other
doubt leads to a new list, whose differences to the copy are reported as changes. So a listener
sees every object at least once and never keeps one that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import aiohttp

from sim_cluster.api_client import ApiClient, ApiError, Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sim_cluster.resources import Resource

Key = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""

Listener = Callable[[Object | None, Object | None], None]
"""Called with the object before and after; None before its creation and after its deletion."""

_LOG = logging.getLogger(__name__)
# Watches are renewed this often: a connection that died in silence costs at most this long.
_CHANCE = random.Random()  # noqa: S311 - spreads in time or names, no secret
_WATCH_S = 120
_WATCH_GRACE_S = 15
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


class Informer:
    """The live copy of one collection; `run()` keeps it until cancelled."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        watch_s: int = _WATCH_S,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self._client = client
        self._namespace = namespace
        self._selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._watch_s = watch_s
        self._objects: dict[Key, Object] = {}
        self._listeners: list[Listener] = []
        self._version: str | None = None
        self._pause_s = _FIRST_PAUSE_S

    @property
    def objects(self) -> Mapping[Key, Object]:
        """All objects now; read only, never change one in place."""
        return self._objects

    def get(self, namespace: str | None, name: str) -> Object | None:
        """Look one object up in the copy."""
        return self._objects.get((namespace or "", name))

    def on_change(self, listener: Listener) -> None:
        """Call `listener` at every change; it must be quick and must not raise."""
        self._listeners.append(listener)

    def observe(self, item: Object) -> None:
        """Take in the answer to a write of our own, ahead of its watch event.

        An answer that the watch has already passed is ignored, so nothing deleted comes back.
        """
        key, version = key_of(item), int(item["metadata"]["resourceVersion"])
        known = self._objects.get(key)
        passed = int(version_of(known) or self._version or 0)
        if version > passed:
            self._put(key, item)

    async def run(self) -> None:
        """List and watch for ever; trouble is waited out with growing pauses."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
                self._pause_s = _FIRST_PAUSE_S
            except ApiError as error:
                if error.status == 410:  # too old to resume
                    self._version = None
                _LOG.debug("watch of %s: %s", self.resource.plural, error)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                _LOG.debug("watch of %s: %r", self.resource.plural, error)
            await asyncio.sleep(self._pause_s * _CHANCE.uniform(0.5, 1.0))
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def _list(self) -> None:
        items, version = await self._client.list(
            self.resource,
            self._namespace,
            label_selector=self._selectors["labelSelector"],
            field_selector=self._selectors["fieldSelector"],
        )
        seen = {key_of(item): item for item in items}
        for key in [key for key in self._objects if key not in seen]:
            if not _is_newer(self._objects[key], version):
                self._put(key, None)
        for key, item in seen.items():
            if _is_newer(item, version_of(self._objects.get(key)) or "0"):
                self._put(key, item)
        self._version = version
        self.synced.set()

    async def _watch(self) -> None:
        query = {key: value for key, value in self._selectors.items() if value}
        query |= {
            "resourceVersion": self._version or "",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._watch_s),
        }
        events = self._client.watch(
            self.resource.path(self._namespace), query, timeout_s=self._watch_s + _WATCH_GRACE_S
        )
        async with contextlib.aclosing(events):
            async for event in events:
                self._take(event["type"], event["object"])

    def _take(self, kind: str, item: Object) -> None:
        if kind == "ERROR":
            self._version = None
            code = int(item.get("code", 500))
            raise ApiError(code, item.get("reason", "Unknown"), item.get("message", ""))
        self._version = item["metadata"]["resourceVersion"]
        self._pause_s = _FIRST_PAUSE_S
        if kind == "DELETED":
            known = self._objects.get(key_of(item))
            if known is not None and known["metadata"]["uid"] == item["metadata"]["uid"]:
                self._put(key_of(item), None)
        elif kind != "BOOKMARK":
            known = self._objects.get(key_of(item))
            if known is None or _is_newer(item, version_of(known) or "0"):
                self._put(key_of(item), item)

    def _put(self, key: Key, item: Object | None) -> None:
        before = self._objects.pop(key, None) if item is None else self._objects.get(key)
        if item is not None:
            self._objects[key] = item
        elif before is None:
            return
        for listener in self._listeners:
            listener(before, item)


def key_of(item: Object) -> Key:
    """Namespace and name of an object."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def version_of(item: Object | None) -> str | None:
    """Say which state of the object this is."""
    return None if item is None else item["metadata"]["resourceVersion"]


def _is_newer(item: Object, version: str) -> bool:
    return int(item["metadata"]["resourceVersion"]) > int(version)


async def wait_until_synced(informers: Iterable[Informer]) -> None:
    """Return when each informer has listed its collection once."""
    for informer in informers:
        await informer.synced.wait()
