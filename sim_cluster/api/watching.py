"""Watch responses: one line for each change, bookmarks in between, an end in time."""

import asyncio
import random
import time
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from sim_cluster.api import tables
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import ApiError, expired
from sim_cluster.api.faults import Fault, Faults
from sim_cluster.api.reading import Reader, bookmark
from sim_cluster.api.watch_cache import Watcher

_CHANCE = random.Random()  # noqa: S311 - spreads in time or names, no secret
BOOKMARK_PERIOD_S = 60.0
"""Between bookmarks; also how often the end of a watch is looked at when nothing happens."""

SHORTEST_WATCH_S = 1800.0
"""A watch without `timeoutSeconds` lasts between this and twice this."""


@dataclass(slots=True)
class Watches:
    """Serves watches and can cut them."""

    reader: Reader
    faults: Faults
    _open: dict[Watcher, str] = field(default_factory=dict)

    def drop(self, resource: str) -> int:
        """Cut all watches of a resource ("*": of all); returns how many."""
        hit = [w for w, plural in self._open.items() if resource in ("*", plural)]
        for watcher in hit:
            watcher.drop()
        return len(hit)

    async def serve(
        self, call: Call, request: web.BaseRequest, fault: Fault | None
    ) -> web.StreamResponse:
        """Answer one watch until it ends."""
        watcher, error = self._begin(call, request, fault)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if watcher is None:
            status = (error or expired("too old resource version")).status()
            await response.write(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")
            return response
        self._open[watcher] = call.resource.plural
        try:
            if fault is not None and fault.is_silent:
                await self._stay_silent(call, watcher, fault)
            else:
                await self._send(call, request, response, watcher)
        except (ConnectionError, RuntimeError):
            pass  # the client has gone, which is how most watches end
        finally:
            del self._open[watcher]
            collection = self.reader.state.storage.collection(call.resource.storage_key)
            collection.watchers.discard(watcher)
        if watcher.is_dropped and request.transport is not None:
            request.transport.close()
        return response

    def _begin(
        self, call: Call, request: web.BaseRequest, fault: Fault | None
    ) -> tuple[Watcher | None, ApiError | None]:
        if fault is not None and fault.code == 410:
            return None, fault.error()
        accept = request.headers.get("Accept", "")
        try:
            if tables.wants_table(accept):
                include = request.query.get("includeObject", "Metadata")
                rendering = tables.watch_rendering(call.resource, include)
                return self.reader.watch(call, rendering), None
            return self.reader.watch(call), None
        except ApiError as error:
            if error.code != 410:
                raise
            return None, error

    async def _stay_silent(self, call: Call, watcher: Watcher, fault: Fault) -> None:
        waits = [asyncio.create_task(fault.ended.wait()), asyncio.create_task(watcher.cut.wait())]
        _, pending = await asyncio.wait(
            waits, timeout=_length_s(call), return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending:
            task.cancel()

    async def _send(
        self, call: Call, request: web.BaseRequest, response: web.StreamResponse, watcher: Watcher
    ) -> None:
        ends = time.monotonic() + _length_s(call)
        wants_bookmarks = call.flag("allowWatchBookmarks")
        is_table = tables.wants_table(request.headers.get("Accept", ""))
        while not watcher.is_dropped:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                break
            lines = await watcher.frames(min(BOOKMARK_PERIOD_S, left_s))
            if lines:
                await response.write(lines)
            elif wants_bookmarks and not is_table and not watcher.is_dropped:
                await response.write(bookmark(call, self.reader.state.storage.revision))


def _length_s(call: Call) -> float:
    asked = call.query.get("timeoutSeconds", "")
    if asked.isdigit() and int(asked) > 0:
        return float(asked)
    return SHORTEST_WATCH_S * (1.0 + _CHANCE.random())
