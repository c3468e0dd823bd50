"""A whole simulated cluster for the length of an `async with`: API, nodes, Prometheus, operator.

    async with cluster(backend="memory", nodes=[NodeSpec(accelerator="H100-SXM", count=4)]) as here:
        ...  # here.kubeconfig, here.prometheus_url, here.simulation

Whatever way the block is left, also while it is still being entered, nothing remains: no process,
no port, no file.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim_cluster import backends
from sim_cluster.api_client import ApiClient
from sim_cluster.backends import Backend
from sim_cluster.definitions import applied_definitions
from sim_cluster.nodes import NodeSpec, simulate
from sim_cluster.operator_process import free_operator_ports, running_operator
from sim_cluster.processes import temporary_folder
from sim_cluster.prometheus import serving_prometheus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from sim_cluster.backends import Api, Report
    from sim_cluster.nodes import Simulation
    from sim_cluster.processes import Child

DEFAULT_NODES = (NodeSpec(accelerator="H100-SXM", count=4),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What is up, and the ways in."""

    kubeconfig: Path
    prometheus_url: str | None
    api: Api
    simulation: Simulation
    operator: Child | None = None
    operator_metrics_url: str | None = None
    folder: Path


@contextlib.asynccontextmanager
async def cluster(
    backend: str = "memory",
    *,
    nodes: Sequence[NodeSpec] = DEFAULT_NODES,
    prometheus: bool = True,
    operator: bool = False,
    kubeconfig: Path | None = None,
    startup: str = "2s",
    speed: float = 1.0,
    seed: int = 0,
    scrape_interval_s: float = 1.0,
    scrapes_at_once: bool = False,
    operator_arguments: Sequence[str] = (),
    simulation_options: Mapping[str, Any] | None = None,
    report: Report = print,
) -> AsyncIterator[Cluster]:
    """Bring up an API server, simulated nodes on it, and on request Prometheus and the operator.

    `startup`, `speed`, `seed` and `simulation_options` go to `sim_cluster.nodes.simulate`; with an
    operator, `crds/` is applied first. `kubeconfig` is for the backend of that name only.
    `scrapes_at_once` has the metrics of all pods in one answer, as thousands of pods need it.
    """
    chosen = backends.named(backend)
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        api = await stack.enter_async_context(
            backends.serving_api(chosen, folder, kubeconfig=kubeconfig, report=report)
        )
        simulation = await stack.enter_async_context(
            simulate(
                api.kubeconfig,
                nodes,
                startup=startup,
                speed=speed,
                seed=seed,
                remove_nodes_at_end=chosen is Backend.KUBECONFIG,
                **(simulation_options or {}),
            )
        )
        ports, url = free_operator_ports(), None
        if prometheus:
            url = await stack.enter_async_context(
                serving_prometheus(
                    folder,
                    discovery_url=None if scrapes_at_once else f"{simulation.url}/sd",
                    aggregate_url=f"{simulation.url}/metrics" if scrapes_at_once else None,
                    scrape_interval_s=scrape_interval_s,
                    targets={"fleetline": ports.metrics_address} if operator else None,
                )
            )
        child = None
        if operator:
            client = await stack.enter_async_context(ApiClient.from_kubeconfig(api.kubeconfig))
            await stack.enter_async_context(
                applied_definitions(client, remove_at_end=chosen is Backend.KUBECONFIG)
            )
            child = await stack.enter_async_context(
                running_operator(
                    api.kubeconfig,
                    url,
                    ports=ports,
                    log=folder / "operator.log",
                    arguments=operator_arguments,
                )
            )
        yield Cluster(
            kubeconfig=api.kubeconfig,
            prometheus_url=url,
            api=api,
            simulation=simulation,
            operator=child,
            operator_metrics_url=f"http://{ports.metrics_address}/metrics" if operator else None,
            folder=folder,
        )
