"""The API servers that a simulated cluster can stand on; all of them end up as a kubeconfig.

memory        our own API in this process, with our own controllers
controlplane  the real API server, controllers and scheduler: Go modules or KUBEBUILDER_ASSETS
kubeconfig    a cluster that is there already: kind, k3d, any other
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_cluster.api_client import ApiClient
from sim_cluster.controllers.running import running_controllers, running_endpoints
from sim_cluster.controlplane import build, roles, serve
from sim_cluster.processes import StartError

if TYPE_CHECKING:
    from sim_cluster.processes import Child

Report = Callable[[str], None]


class Backend(StrEnum):
    """What plays the API server."""

    MEMORY = "memory"
    CONTROLPLANE = "controlplane"
    KUBECONFIG = "kubeconfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API server that is up."""

    backend: Backend
    kubeconfig: Path
    memory: Any = None
    """The `MemoryApi`, with its faults and counts; None on other backends."""
    processes: tuple[Child, ...] = ()


def named(name: str) -> Backend:
    """Find a backend by its name."""
    try:
        return Backend(name)
    except ValueError:
        raise StartError(f"backend must be one of {', '.join(Backend)}, got {name!r}") from None


@contextlib.asynccontextmanager
async def serving_api(
    backend: Backend, folder: Path, *, kubeconfig: Path | None = None, report: Report = print
) -> AsyncIterator[Api]:
    """Provide an API server with controllers and a scheduler; its files lie below `folder`."""
    match backend:
        case Backend.MEMORY:
            chosen = _memory(folder)
        case Backend.CONTROLPLANE:
            chosen = _controlplane(folder, report)
        case Backend.KUBECONFIG:
            chosen = _existing(kubeconfig)
    async with chosen as api:
        yield api


@contextlib.asynccontextmanager
async def _memory(folder: Path) -> AsyncIterator[Api]:
    from sim_cluster.api.server import MemoryApi  # noqa: PLC0415 (other backends start without)

    async with MemoryApi(port=0) as server:
        kubeconfig = folder / "kubeconfig"
        server.write_kubeconfig(kubeconfig)
        async with (
            ApiClient.from_kubeconfig(kubeconfig, user_agent="sim-cluster-controllers") as client,
            running_controllers(client, authority_pem=server.ca_pem),
        ):
            yield Api(backend=Backend.MEMORY, kubeconfig=kubeconfig, memory=server)


@contextlib.asynccontextmanager
async def _controlplane(folder: Path, report: Report) -> AsyncIterator[Api]:
    programs = await _programs(report)
    async with serve.serving(programs, folder) as plane:
        client = ApiClient.from_kubeconfig(plane.kubeconfig, user_agent="sim-cluster-controllers")
        controllers = running_endpoints if programs.is_complete else running_controllers
        async with client, controllers(client):
            yield Api(
                backend=Backend.CONTROLPLANE,
                kubeconfig=plane.kubeconfig,
                processes=plane.processes,
            )


@contextlib.asynccontextmanager
async def _existing(kubeconfig: Path | None) -> AsyncIterator[Api]:
    path = kubeconfig or Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not path.exists():
        raise StartError(f"kubeconfig must be an existing file, got {path}")
    async with (
        ApiClient.from_kubeconfig(path, user_agent="sim-cluster-controllers") as client,
        running_endpoints(client),
    ):
        yield Api(backend=Backend.KUBECONFIG, kubeconfig=path)


async def _programs(report: Report) -> roles.Programs:
    if folder := os.environ.get("KUBEBUILDER_ASSETS"):
        return roles.assets(Path(folder))
    given_up = threading.Event()
    try:
        return roles.one_program(await asyncio.to_thread(build.binary, report, given_up))
    except asyncio.CancelledError:
        given_up.set()
        raise
