"""The informer: a copy that is never wrong for long, whatever the watch does."""

import asyncio
import contextlib

import pytest
from aiohttp import web

from sim_cluster.api_client import ApiClient, ApiError
from sim_cluster.connection import Connection
from sim_cluster.informer import Informer
from sim_cluster.resources import CONFIG_MAPS


class Server:
    """Answers lists from `items` and watches from a queue; 410 whenever told."""

    def __init__(self):
        self.items = {}
        self.version = 1
        self.events = asyncio.Queue()
        self.lists = 0
        self.watched_from = []
        self.throttles = 0

    async def answer(self, request):
        if self.throttles:
            self.throttles -= 1
            return web.json_response(
                {"reason": "TooManyRequests"}, status=429, headers={"Retry-After": "0"}
            )
        if request.query.get("watch"):
            return await self.watch(request)
        self.lists += 1
        metadata = {"resourceVersion": str(self.version)}
        return web.json_response({"metadata": metadata, "items": list(self.items.values())})

    async def watch(self, request):
        self.watched_from.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        while (line := await self.events.get()) is not None:
            await response.write(line)
        return response

    def item(self, name, version):
        return {
            "metadata": {
                "name": name,
                "namespace": "n",
                "uid": name,
                "resourceVersion": str(version),
            }
        }

    def send(self, kind, item):
        import json

        self.events.put_nowait(json.dumps({"type": kind, "object": item}).encode() + b"\n")


@contextlib.asynccontextmanager
async def serving(server):
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with ApiClient(Connection(url=f"http://127.0.0.1:{port}")) as client:
        yield client
    server.events.put_nowait(None)
    await runner.cleanup()


@pytest.fixture
async def server():
    return Server()


@pytest.fixture
async def informer(server):
    async with serving(server) as client:
        informer = Informer(client, CONFIG_MAPS)
        task = asyncio.create_task(informer.run())
        yield informer
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(look):
    async with asyncio.timeout(20):
        while not look():
            await asyncio.sleep(0.005)


async def test_a_watch_continues_where_the_list_ended(server, informer):
    server.version = 7
    await informer.synced.wait()
    await until(lambda: server.watched_from)

    assert server.watched_from == ["7"]


async def test_changes_reach_the_copy_and_the_listener(server, informer):
    seen = []
    informer.on_change(lambda before, after: seen.append((before is None, after is None)))
    await informer.synced.wait()

    server.send("ADDED", server.item("a", 2))
    server.send("MODIFIED", server.item("a", 3))
    server.send("DELETED", server.item("a", 4))

    await until(lambda: len(seen) == 3)
    assert seen == [(True, False), (False, False), (False, True)]
    assert informer.objects == {}


async def test_after_a_broken_watch_it_resumes_from_the_last_bookmark(server, informer):
    await informer.synced.wait()
    server.send("BOOKMARK", server.item("", 50))

    server.events.put_nowait(None)

    await until(lambda: len(server.watched_from) == 2)
    assert server.watched_from[1] == "50"
    assert server.lists == 1


async def test_a_version_that_is_too_old_leads_to_a_new_list(server, informer):
    server.items = {"old": server.item("old", 1)}
    await informer.synced.wait()
    await until(lambda: server.watched_from)
    server.items, server.version = {"new": server.item("new", 90)}, 90

    server.send("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})

    await until(lambda: ("n", "new") in informer.objects)
    assert ("n", "old") not in informer.objects
    assert server.lists == 2


async def test_our_own_write_is_seen_before_its_event(server, informer):
    await informer.synced.wait()

    informer.observe(server.item("mine", 5))

    assert ("n", "mine") in informer.objects


async def test_an_answer_that_comes_late_brings_nothing_back(server, informer):
    await informer.synced.wait()
    server.send("ADDED", server.item("mine", 5))
    server.send("DELETED", server.item("mine", 6))
    server.send("ADDED", server.item("other", 7))
    await until(lambda: ("n", "other") in informer.objects)

    informer.observe(server.item("mine", 5))

    assert ("n", "mine") not in informer.objects


async def test_the_event_of_our_own_write_is_no_second_change(server, informer):
    await informer.synced.wait()
    seen = []
    informer.on_change(lambda _, after: seen.append(after["metadata"]["name"]))
    informer.observe(server.item("mine", 5))

    server.send("ADDED", server.item("mine", 5))
    server.send("ADDED", server.item("other", 6))

    await until(lambda: "other" in seen)
    assert seen == ["mine", "other"]


async def test_a_throttled_request_is_sent_again(server):
    server.throttles = 2
    async with serving(server) as client:
        items, version = await client.list(CONFIG_MAPS)

    assert (items, version) == ([], "1")


async def test_a_request_that_stays_throttled_is_an_error(server):
    server.throttles = 1000
    async with serving(server) as client:
        with pytest.raises(ApiError, match="429 TooManyRequests"):
            await client.list(CONFIG_MAPS)
