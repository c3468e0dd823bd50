"""Nodes as their kubelets register and keep them: objects, Ready conditions and leases."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from sim_cluster.api_client import ApiError
from sim_cluster.nodes import node_specs
from sim_cluster.nodes.pod_status import timestamp
from sim_cluster.resources import LEASES, NAMESPACES, NODES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sim_cluster.api_client import ApiClient
    from sim_cluster.nodes.node_specs import NodeSpec

_LOG = logging.getLogger(__name__)

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_DURATION_S: Final = 40
RENEWAL_S: Final = 10.0  # as real kubelets do
_AT_ONCE: Final = 48
_SLICES: Final = 10
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


class NodeKeeper:
    """Registers nodes and renews their leases, many at a time, spread over the interval."""

    def __init__(self, client: ApiClient, *, renewal_s: float = RENEWAL_S) -> None:
        self._client = client
        self._renewal_s = renewal_s
        self._silent: set[str] = set()
        self._registered: dict[str, NodeSpec] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that are kept."""
        return list(self._registered)

    def spec_of(self, name: str) -> NodeSpec:
        """Say of which kind a node is."""
        return self._registered[name]

    async def register(self, specs: Iterable[NodeSpec]) -> None:
        """Create the nodes, or take over those that exist, and their leases."""
        await self._ensure_lease_namespace()
        wanted = [(spec, name) for spec in specs for name in spec.names()]
        await self._all(lambda one: self._register(*one), wanted)

    async def renew(self) -> None:
        """Renew every lease in each interval until cancelled."""
        while True:
            names = [name for name in self._registered if name not in self._silent]
            for index in range(_SLICES):
                pause = asyncio.create_task(asyncio.sleep(self._renewal_s / _SLICES))
                await self._all(self._renew, names[index::_SLICES])
                await pause

    def fall_silent(self, name: str) -> None:
        """Renew the node's lease no more: its cluster will find it NotReady."""
        self._silent.add(name)

    def speak_again(self, name: str) -> None:
        """Renew the node's lease again."""
        self._silent.discard(name)

    async def remove(self, name: str) -> None:
        """Delete the node's object and lease, as a cloud provider does with a lost machine."""
        self._registered.pop(name, None)
        await self._client.delete(NODES, None, name)
        await self._client.delete(LEASES, LEASE_NAMESPACE, name)

    async def remove_all(self) -> None:
        """Delete every node that is kept."""
        await self._all(self.remove, self.nodes)

    async def _register(self, spec: NodeSpec, name: str) -> None:
        body = node_specs.manifest(spec, name)
        try:
            await self._client.create(NODES, body)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._client.patch(NODES, None, name, body)
        await self._client.patch(NODES, None, name, {"status": _status(spec)}, subresource="status")
        await self._create_lease(name)
        self._registered[name] = spec

    async def _create_lease(self, name: str) -> None:
        body = {
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_DURATION_S,
                "renewTime": _microseconds(),
            },
        }
        try:
            await self._client.create(LEASES, body)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._renew(name)

    async def _renew(self, name: str) -> None:
        body = {"spec": {"renewTime": _microseconds()}}
        try:
            await self._client.patch(LEASES, LEASE_NAMESPACE, name, body)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            _LOG.debug("lease of %s: %r", name, error)  # the next round tries again

    async def _ensure_lease_namespace(self) -> None:
        if await self._client.find(NAMESPACES, None, LEASE_NAMESPACE) is None:
            try:
                await self._client.create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})
            except ApiError as error:
                if error.status != 409:
                    raise

    async def _all(self, action: Callable[[Any], Awaitable[None]], items: Iterable[Any]) -> None:
        async def one(item: Any) -> None:
            async with self._slots:
                await action(item)

        await asyncio.gather(*(one(item) for item in items))


def _status(spec: NodeSpec) -> dict[str, Any]:
    now, resources = timestamp(), node_specs.allocatable(spec)
    return {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "simulated",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, status, reason in _CONDITIONS
        ],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "nodeInfo": _node_info(),
    }


def _node_info() -> dict[str, str]:
    unknown = ("machineID", "systemUUID", "bootID")
    return {
        **dict.fromkeys(unknown, "simulated"),
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "simulated",
        "kernelVersion": "0",
        "containerRuntimeVersion": "sim://0",
        "kubeletVersion": "v0.0.0-sim",
        "kubeProxyVersion": "",
    }


def _microseconds() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
