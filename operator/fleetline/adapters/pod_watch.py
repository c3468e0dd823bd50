"""
Pods by the workload that owns them, kept up to date by a watch; the full list stays the truth.

Twenty thousand pods are some 70 MB of JSON: too much to be listed at every turn. So they are listed
page by page at the start, every few minutes, and whenever the watch leaves a doubt (it ended with
an error, expired, or was silent for longer than bookmarks ever are). While the list fails, nothing
is known about pods, and that is said: no turn is taken on what a dead watch left behind.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping
from typing import Final

import msgspec

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.listing import Bookmark, Failure, WatchEvent, page_reader
from fleetline.adapters.pods import PodObject, SeenPod, owner_of, read_pod
from fleetline.errors import ObservationError

Key = tuple[str, str, str]
"""(namespace, kind, name)"""

_CHANCE: Final = random.Random()  # noqa: S311 - spreads in time or names, no secret
RELIST_S: Final = 300.0
"""A watch that lost an event unnoticed is wrong for at most this long. [s]"""

FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 8.0
"""Between two lists while watches are refused or end early, and between two watches the first: a
list of all pods is dear to the API server. [s]"""

PODS: Final = page_reader(PodObject)
POD: Final = msgspec.json.Decoder(PodObject)
EVENT: Final = msgspec.json.Decoder(WatchEvent)
BOOKMARK: Final = msgspec.json.Decoder(Bookmark)
FAILURE: Final = msgspec.json.Decoder(Failure)


class PodStore:
    """Pods as a list and later events left them."""

    def __init__(self) -> None:
        """Begin empty."""
        self.by_owner: dict[Key, dict[str, SeenPod]] = {}
        self._owners: dict[tuple[str, str], Key] = {}
        self._labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def put(self, item: PodObject) -> None:
        """Take a pod as it is now."""
        place = item.metadata.namespace, item.metadata.name
        seen, owner = read_pod(item), owner_of(item)
        known = self._owners.get(place)
        if known is not None and (seen is None or owner != known):
            self.drop(item)
        if seen is None or owner is None:
            return
        labels = self._labels.setdefault(tuple(seen.labels.items()), seen.labels)
        self._owners[place] = owner
        kept = SeenPod(seen.pod, seen.node, labels)
        self.by_owner.setdefault(owner, {})[seen.pod.name] = kept

    def drop(self, item: PodObject) -> None:
        """Forget a pod that is gone."""
        owner = self._owners.pop((item.metadata.namespace, item.metadata.name), None)
        if owner is None:
            return
        pods = self.by_owner[owner]
        del pods[item.metadata.name]
        if not pods:
            del self.by_owner[owner]


async def list_pods(api: ApiClient, path: str) -> tuple[PodStore, str]:
    """
    Read all pods of one path, page by page; with the resource version to watch from.

    Raises
    ------
    ObservationError
        If a page cannot be read.
    """
    store, following = PodStore(), ""
    while True:
        page = await api.page(path, PODS, following)
        for item in page.items or ():
            store.put(item)
        following = page.metadata.following
        if not following:
            return store, page.metadata.version


class PodWatch:
    """The pods of one path (of a namespace, or of all), until it is stopped."""

    def __init__(self, api: ApiClient, path: str, *, relist_s: float = RELIST_S) -> None:
        """List `path` anew every `relist_s`. [s]"""
        self._api = api
        self._path = path
        self._relist_s = relist_s
        self._store = PodStore()
        self._trouble: ObservationError | None = None
        self._known = asyncio.Event()
        """Set while the store, or why there is none, is known."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to list and watch."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def pods(self) -> Mapping[Key, Mapping[str, SeenPod]]:
        """
        Return the pods by their owners, as they are now.

        Raises
        ------
        ObservationError
            If they cannot be listed.
        """
        await self._known.wait()
        if self._trouble is not None:
            raise self._trouble
        return self._store.by_owner

    async def _keep(self) -> None:
        """List and watch for ever; each failure is followed by a longer pause."""
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while True:
            since_s = loop.time()
            try:
                self._store, version = await list_pods(self._api, self._path)
                self._trouble, since_s = None, loop.time()
                self._known.set()
                await self._follow(version)
            except Exception as error:  # noqa: BLE001 - or a store that nobody keeps would be read
                self._trouble = self._in_plain_words(error)
                self._known.set()
            if self._trouble is None and loop.time() - since_s >= LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s * _CHANCE.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _in_plain_words(self, error: Exception) -> ObservationError:
        if isinstance(error, ObservationError):
            return error
        return ObservationError(f"cannot watch {self._path}: {type(error).__name__}: {error}")

    async def _follow(self, version: str) -> None:
        """Watch until it is time to list again, or there is a doubt."""
        spread = _CHANCE.uniform(0.9, 1.1)
        with contextlib.suppress(ObservationError, TimeoutError):
            async with asyncio.timeout(self._relist_s * spread):
                while True:
                    async with self._api.watch(self._path, version) as lines:
                        async for line in lines:
                            version = self._take(line) or version
                    await asyncio.sleep(FIRST_PAUSE_S)  # a server may end each watch at once

    def _take(self, line: bytes) -> str:
        """Take one event; returns the resource version that it brings."""
        event = EVENT.decode(line)
        if event.kind == "ERROR":
            failure = FAILURE.decode(event.content)
            raise ApiError(failure.code, f"the watch of pods ended: {failure.message}")
        if event.kind == "BOOKMARK":
            return BOOKMARK.decode(event.content).metadata.version
        pod = POD.decode(event.content)
        self._store.drop(pod) if event.kind == "DELETED" else self._store.put(pod)
        return pod.metadata.resource_version
