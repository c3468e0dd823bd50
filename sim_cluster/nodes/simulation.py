"""The simulated hardware under a cluster: nodes, pods, serving replicas, routers, faults."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_cluster.api_client import ApiClient
from sim_cluster.informer import Informer
from sim_cluster.nodes import discovery
from sim_cluster.nodes.addresses import AddressBook
from sim_cluster.nodes.background import Background
from sim_cluster.nodes.breakage import Faults
from sim_cluster.nodes.clock import LiveClock
from sim_cluster.nodes.control_server import control_server
from sim_cluster.nodes.kubelet import WORKERS, Kubelet
from sim_cluster.nodes.lifecycle import Lifecycle
from sim_cluster.nodes.node_keeper import RENEWAL_S, NodeKeeper
from sim_cluster.nodes.node_specs import carried_by
from sim_cluster.nodes.pod_servers import PodServers
from sim_cluster.nodes.pool import ReplicaPool
from sim_cluster.nodes.startup import parse_startup_time
from sim_cluster.nodes.usage import Usage
from sim_cluster.resources import ENDPOINT_SLICES, PODS
from sim_cluster.traffic.endpoints import Endpoints, SelectedPods, slices_selector
from sim_cluster.traffic.router import Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from sim_cluster.informer import Key
    from sim_cluster.nodes.node_specs import NodeSpec
    from sim_cluster.nodes.pod_status import SimulatedPod

DEFAULT_STARTUP = "2s"
MOST_LISTENERS = 500


class Simulation:
    """Everything that `simulate` keeps alive."""

    def __init__(
        self,
        client: ApiClient,
        *,
        startup: str = DEFAULT_STARTUP,
        speed: float = 1.0,
        seed: int = 0,
        most_listeners: int = MOST_LISTENERS,
        renewal_s: float = RENEWAL_S,
    ) -> None:
        self.client = client
        self.clock = LiveClock(speed)
        self.pool = ReplicaPool()
        self.routers: dict[Key, Router] = {}
        self.faults = Faults(self)
        self.url = ""
        """Of the control server: /sd, /metrics, /pods, /faults."""
        self.keeper = NodeKeeper(client, renewal_s=renewal_s)
        self._seed = seed
        self._informer = Informer(client, PODS)
        self._background = Background()
        addresses = AddressBook(most_sockets=most_listeners)
        self._servers = PodServers(self.pool, addresses)
        self.lifecycle = Lifecycle(
            clock=self.clock,
            pool=self.pool,
            addresses=addresses,
            startup=parse_startup_time(startup),
            seed=seed,
        )
        self.usage = Usage(self.clock)
        """Accelerators held, for the bill."""
        self.lifecycle.on_bound.append(self.usage.begin)
        self.lifecycle.on_forgotten.append(self.usage.end)
        self.lifecycle.on_serving.append(self._servers.open)
        self.lifecycle.on_stopped.append(self._servers.disconnect)
        self.lifecycle.on_forgotten.append(self._servers.close)
        self.kubelet = Kubelet(client, self._informer, self.lifecycle)

    @property
    def pods(self) -> Mapping[Key, SimulatedPod]:
        """The pods on simulated nodes, by namespace and name."""
        return self.lifecycle.pods

    async def add_nodes(self, specs: Iterable[NodeSpec]) -> None:
        """Register more nodes."""
        specs = list(specs)
        await self.keeper.register(specs)
        self.adopt(name for spec in specs for name in spec.names())

    def adopt(self, nodes: Iterable[str]) -> None:
        """Let the pods of registered nodes live."""
        self.kubelet.adopt({name: carried_by(self.keeper.spec_of(name)) for name in nodes})

    async def router(
        self,
        service: str,
        *,
        namespace: str = "default",
        model_name: str = "",
        balance: str = "least-loaded",
        selector: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> Router:
        """
        Put a gateway before the pods behind a Service and follow its EndpointSlices.

        With a `selector` it follows the ready pods with those labels; then `service` is just the
        gateway's name. `model_name` is the label of its own metrics; empty: the name.
        """
        endpoints: Endpoints | SelectedPods
        if selector is None:
            endpoints = await self._endpoints_of(namespace, service)
        else:
            endpoints = self._selected_pods(namespace, selector)
        router = Router(
            (namespace, service),
            self.pool,
            model_name=model_name or service,
            endpoints=endpoints,
            balance=balance,
            seed=self._seed if seed is None else seed,
        )
        self.routers[namespace, service] = router
        self.pool.sources.append(router)
        return router

    async def _endpoints_of(self, namespace: str, service: str) -> Endpoints:
        selector = slices_selector(service)
        slices = Informer(
            self.client, ENDPOINT_SLICES, namespace=namespace, label_selector=selector
        )
        endpoints = Endpoints()
        slices.on_change(endpoints.take)
        self._background.spawn(slices.run())
        await slices.synced.wait()
        return endpoints

    def _selected_pods(self, namespace: str, labels: Mapping[str, str]) -> SelectedPods:
        selected = SelectedPods(namespace, labels)
        for pod in self._informer.objects.values():
            selected.take(None, pod)
        self._informer.on_change(selected.take)
        return selected

    def discovery(self) -> list[dict[str, Any]]:
        """List what Prometheus can scrape: pods with an engine, and routers."""
        control = self.url.removeprefix("http://")
        serving = (
            (self._informer.get(*key), pod, self.pool.replicas[key].spec.port)
            for key, pod in self.pods.items()
            if key in self.pool.replicas
        )
        pods = [
            discovery.pod_target(
                manifest,
                port=port,
                address=pod.ip if self._servers.listens_on(pod.ip) else None,
                control=control,
            )
            for manifest, pod, port in serving
            if manifest is not None
        ]
        return pods + [discovery.gateway_target(*key, control=control) for key in self.routers]

    @contextlib.asynccontextmanager
    async def running(self, *, control_port: int) -> AsyncIterator[None]:
        """Keep pods, leases, time and HTTP going."""
        await self._servers.start()
        try:
            async with control_server(self, port=control_port) as self.url:
                self._background.spawn(self._informer.run())
                self._background.spawn(self.keeper.renew())
                self._background.spawn(self.pool.run(self.clock))
                for _ in range(WORKERS):
                    self._background.spawn(self.kubelet.work())
                yield
        finally:
            await self._background.stop()
            await self._servers.stop()


@contextlib.asynccontextmanager
async def simulate(
    api: ApiClient | Path,
    nodes: Sequence[NodeSpec] = (),
    *,
    startup: str = DEFAULT_STARTUP,
    speed: float = 1.0,
    seed: int = 0,
    control_port: int = 0,
    most_listeners: int = MOST_LISTENERS,
    renewal_s: float = RENEWAL_S,
    remove_nodes_at_end: bool = False,
) -> AsyncIterator[Simulation]:
    """
    Put simulated nodes and pods under a cluster for as long as the context lasts.

    Parameters
    ----------
    api
        An entered client, or the path of a kubeconfig.
    nodes
        Which nodes to register; more may follow by `Simulation.add_nodes`.
    startup
        How long pods start unless their annotation says otherwise: `8s`, `lognormal(60s,0.4)`.
    speed
        Simulated seconds in one real second; anything but 1 is for tests (see `LiveClock`).
    seed
        Of start-up times and routing.
    control_port
        Of the control server on 127.0.0.1; 0: any free port.
    most_listeners
        Pods with a listening socket of their own; later ones answer under the control server.
    renewal_s
        Time between two renewals of a node's lease. [s]
    remove_nodes_at_end
        Delete the nodes when the context ends; for clusters that outlive the simulation.
    """
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(api, Path):
            client = ApiClient.from_kubeconfig(api, user_agent="sim-cluster-nodes")
            api = await stack.enter_async_context(client)
        simulation = Simulation(
            api,
            startup=startup,
            speed=speed,
            seed=seed,
            most_listeners=most_listeners,
            renewal_s=renewal_s,
        )
        await stack.enter_async_context(simulation.running(control_port=control_port))
        await simulation.add_nodes(nodes)
        if remove_nodes_at_end:
            stack.push_async_callback(simulation.keeper.remove_all)
        yield simulation
