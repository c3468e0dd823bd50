"""Start all controllers as tasks of this event loop, and end them with the block."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from sim_cluster.controllers.deployment import Deployments
from sim_cluster.controllers.endpoint_slices import EndpointSlices
from sim_cluster.controllers.garbage import GarbageCollector
from sim_cluster.controllers.index import Index
from sim_cluster.controllers.kinds import Kinds
from sim_cluster.controllers.namespaces import Namespaces
from sim_cluster.controllers.node_lifecycle import NodeLifecycle
from sim_cluster.controllers.replica_set import ReplicaSets
from sim_cluster.controllers.scheduler import Scheduler
from sim_cluster.controllers.service_accounts import ServiceAccounts
from sim_cluster.controllers.stateful_set import StatefulSets
from sim_cluster.controllers.view import View, owner_terms
from sim_cluster.controllers.worker import Controller, work
from sim_cluster.resources import REPLICA_SETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sim_cluster.api_client import ApiClient

_WORKERS = {"scheduler": 16, "garbage": 16, "kinds": 1}
_WORKERS_OTHERWISE = 8


@contextlib.asynccontextmanager
async def running_endpoints(client: ApiClient) -> AsyncIterator[None]:
    """Run only what a real cluster's own controllers cannot do for simulated pods."""
    view = View(client)
    async with _running(view, [EndpointSlices(view)]):
        yield


@contextlib.asynccontextmanager
async def running_controllers(
    client: ApiClient, *, authority_pem: str | None = None
) -> AsyncIterator[None]:
    """Run the controllers that a real cluster has, as far as serving fleets need them."""
    view = View(client)
    collector = GarbageCollector(view)
    sets_by_owner: Index[str] = Index(view.informer(REPLICA_SETS), owner_terms)
    controllers: list[Controller[Any]] = [
        Deployments(view, sets_by_owner),
        ReplicaSets(view, sets_by_owner),
        StatefulSets(view),
        Scheduler(view),
        EndpointSlices(view),
        ServiceAccounts(view, authority_pem=authority_pem),
        Namespaces(view),
        NodeLifecycle(view),
        collector,
        Kinds(view, collector),
    ]
    async with _running(view, controllers):
        yield


@contextlib.asynccontextmanager
async def _running(view: View, controllers: Sequence[Controller[Any]]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(view.run())]
    try:
        await asyncio.sleep(0)  # the copies start
        await view.synced()
        for controller in controllers:
            workers = _WORKERS.get(controller.name, _WORKERS_OTHERWISE)
            tasks.append(asyncio.create_task(work(controller, workers=workers)))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
