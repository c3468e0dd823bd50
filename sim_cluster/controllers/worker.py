"""The loop that every controller runs in: take a key, look, make the world a little righter."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import aiohttp

from sim_cluster.api_client import ApiError

if TYPE_CHECKING:
    from sim_cluster.controllers.work_queue import WorkQueue

_LOG = logging.getLogger(__name__)

Key = TypeVar("Key")


class Controller(Protocol, Generic[Key]):
    """Brings what a key stands for nearer to what its object asks for; called again until it is."""

    name: str
    queue: WorkQueue[Key]

    async def reconcile(self, key: Key) -> None:
        """Take one step; an exception means: later again."""


async def work(controller: Controller[Key], *, workers: int) -> None:
    """Serve a controller's queue until cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_serve(controller))
    finally:
        controller.queue.close()


async def _serve(controller: Controller[Key]) -> None:
    while True:
        key = await controller.queue.take()
        try:
            await controller.reconcile(key)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            _LOG.debug("%s %s: %s; again later", controller.name, key, error)
            controller.queue.failed(key)
        except Exception:  # noqa: BLE001 (a bug in one key's path must not stop all the others)
            _LOG.exception("%s %s failed; again later", controller.name, key)
            controller.queue.failed(key)
        else:
            controller.queue.succeeded(key)
        finally:
            controller.queue.done(key)
