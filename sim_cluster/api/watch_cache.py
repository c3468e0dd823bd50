"""Watches: a client's view on the changes of one collection, from a revision on."""

import asyncio
from collections import deque
from collections.abc import Callable

from sim_cluster.api.errors import expired
from sim_cluster.api.selectors import Selector
from sim_cluster.api.storage import Change, Collection, Record

Rendering = Callable[[Record], bytes]


def frame(kind: str, body: bytes) -> bytes:
    """One line of a watch response."""
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


class Watcher:
    """Collects the frames that one client has yet to receive."""

    def __init__(
        self, *, collection: Collection, namespace: str, selector: Selector, render: Rendering
    ) -> None:
        self._collection = collection
        self._namespace = namespace
        self._selector = selector
        self._render = render
        self._frames: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self.last_revision = 0
        self.cut = asyncio.Event()

    @property
    def is_dropped(self) -> bool:
        """Whether the connection was cut."""
        return self.cut.is_set()

    def replay(self, revision: int) -> None:
        """Queue what happened after a revision, or refuse when it is no longer known."""
        if revision < self._collection.oldest_revision:
            oldest = self._collection.oldest_revision
            raise expired(f"too old resource version: {revision} ({oldest})")
        self.last_revision = revision
        missed = []
        for change in reversed(self._collection.changes):
            if change.revision <= revision:
                break
            missed.append(change)
        for change in reversed(missed):
            self.notice(change)

    def queue(self, kind: str, record: Record) -> None:
        """Queue one object as it is."""
        self._frames.append(frame(kind, self._render(record)))
        self._wake.set()

    def queue_frame(self, line: bytes) -> None:
        """Queue a ready line (a bookmark or an error)."""
        self._frames.append(line)
        self._wake.set()

    def drop(self) -> None:
        """End the connection without a word, as a broken network does."""
        self.cut.set()
        self._wake.set()

    def notice(self, change: Change) -> None:
        """Queue a change when it concerns this client."""
        self.last_revision = change.revision
        record, previous = change.record, change.previous
        if self._namespace and record.namespace != self._namespace:
            return
        kind: str | None = change.kind
        if not self._selector.is_empty:
            kind = self._seen_as(change.kind, record, previous)
        if kind is not None:
            self._frames.append(frame(kind, self._render(record)))
            self._wake.set()

    def _seen_as(self, kind: str, record: Record, previous: Record | None) -> str | None:
        before = previous is not None and self._selector.matches(previous)
        if kind == "DELETED":
            return "DELETED" if before else None
        if self._selector.matches(record):
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None

    async def frames(self, timeout_s: float) -> bytes:
        """All queued frames, waiting up to a time for the first; empty when none came."""
        if not self._frames and not self.is_dropped:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_s)
            except TimeoutError:
                return b""
        lines = b"".join(self._frames)
        self._frames.clear()
        return lines
