"""Pods by watch: what the watch loses the list brings, and what cannot be listed is not known."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.pod_watch import PodWatch
from fleetline.errors import FleetlineError, ObservationError
from sim_cluster.resources import PODS
from tests.entrypoints.world import READY, World

PATH = "/api/v1/pods"
OWNER = ("default", "Deployment", "chat")


class Disowned(ApiClient):
    """Cannot read its configuration for a while, as when a token file is being replaced."""

    is_lost = False

    async def page(self, *args: Any, **options: Any) -> Any:
        if self.is_lost:
            raise FleetlineError("cannot read the Kubernetes configuration: token file is empty")
        return await super().page(*args, **options)


@contextlib.asynccontextmanager
async def watching(
    world: World, *, relist_s: float = 60.0, api: ApiClient | None = None
) -> AsyncIterator[PodWatch]:
    api = api or ApiClient(world.kubeconfig, deadline_s=2.0)
    await api.connect()
    watch = PodWatch(api, PATH, relist_s=relist_s)
    watch.start()
    try:
        yield watch
    finally:
        await watch.stop()
        await api.close()


async def until_pods(world: World, watch: PodWatch, count: int) -> None:
    async def there() -> bool:
        return len((await watch.pods()).get(OWNER, {})) == count

    await world.until(there, 10)


def lists(world: World) -> int:
    return world.api.request_counts.count(verb="list", resource="pods", user_agent="fleetline")


async def test_pods_come_and_go_without_another_list(world: World) -> None:
    await world.add_pods("chat", 2)

    async with watching(world) as watch:
        await until_pods(world, watch, 2)
        await world.add_pods("chat", 1)
        await until_pods(world, watch, 3)
        await world.client.delete(PODS, "default", "chat-abc-0", options={"gracePeriodSeconds": 0})
        await until_pods(world, watch, 2)

        assert lists(world) == 1


async def test_a_pod_that_changes_is_seen_as_it_is(world: World) -> None:
    await world.add_pods("chat", 1)

    async with watching(world) as watch:
        await until_pods(world, watch, 1)
        unready = {**READY, "conditions": [{"type": "Ready", "status": "False"}]}
        await world.client.patch(
            PODS, "default", "chat-abc-0", {"status": unready}, subresource="status"
        )

        async def unready_now() -> bool:
            return (await watch.pods())[OWNER]["chat-abc-0"].pod.ready_since_s is None

        await world.until(unready_now, 10)


async def test_a_pod_that_is_over_is_forgotten(world: World) -> None:
    await world.add_pods("chat", 1)

    async with watching(world) as watch:
        await until_pods(world, watch, 1)
        await world.client.patch(
            PODS, "default", "chat-abc-0", {"status": {"phase": "Failed"}}, subresource="status"
        )
        await until_pods(world, watch, 0)


async def test_a_dead_watch_is_made_up_for_by_the_list(world: World) -> None:
    world.api.faults.silent_watches(resource="pods")

    async with watching(world, relist_s=0.5) as watch:
        await until_pods(world, watch, 0)
        await world.add_pods("chat", 2)
        await until_pods(world, watch, 2)


async def test_a_watch_that_is_cut_or_expired_begins_again(world: World) -> None:
    async with watching(world) as watch:
        await until_pods(world, watch, 0)
        world.api.faults.expire_watches(resource="pods", times=1)
        world.api.faults.drop_watches("pods")
        await world.add_pods("chat", 2)
        await until_pods(world, watch, 2)


@pytest.mark.parametrize("code", [403, 500])
async def test_what_cannot_be_listed_is_not_known_until_it_can(world: World, code: int) -> None:
    await world.add_pods("chat", 2)
    world.api.faults.fail(code, verb="list", resource="pods")

    async with watching(world) as watch:
        with pytest.raises(ObservationError):
            await watch.pods()
        world.api.faults.clear()
        await asyncio.sleep(1.0)
        await until_pods(world, watch, 2)


async def test_a_list_that_fails_after_the_watch_ended_hides_what_was_known(world: World) -> None:
    await world.add_pods("chat", 2)

    async with watching(world) as watch:
        await until_pods(world, watch, 2)
        world.api.faults.fail(500, verb="list", resource="pods")
        world.api.faults.fail(410, verb="watch", resource="pods")
        world.api.faults.drop_watches("pods")

        async def unknown() -> bool:
            with contextlib.suppress(ObservationError):
                await watch.pods()
                return False
            return True

        await world.until(unknown, 10)


async def test_a_watch_that_is_refused_does_not_list_again_and_again(world: World) -> None:
    await world.add_pods("chat", 2)
    world.api.faults.fail(403, verb="watch", resource="pods")

    async with watching(world) as watch:
        await until_pods(world, watch, 2)
        await asyncio.sleep(2.0)

        assert 2 <= lists(world) <= 5


async def test_whatever_ends_the_watch_hides_what_was_known_until_it_is_listed(
    world: World,
) -> None:
    await world.add_pods("chat", 2)
    api = Disowned(world.kubeconfig, deadline_s=2.0)

    async with watching(world, relist_s=0.3, api=api) as watch:
        await until_pods(world, watch, 2)
        api.is_lost = True

        async def unknown() -> bool:
            with contextlib.suppress(ObservationError):
                await watch.pods()
                return False
            return True

        await world.until(unknown, 10)
        api.is_lost = False
        await until_pods_again(world, watch, 2)


async def until_pods_again(world: World, watch: PodWatch, count: int) -> None:
    async def there() -> bool:
        with contextlib.suppress(ObservationError):
            return len((await watch.pods()).get(OWNER, {})) == count
        return False

    await world.until(there, 10)
