"""Start a control plane as processes on loopback; at the end it is killed, and its data with it.

The API server would drain connections for 10 to 17 s after a SIGTERM; nobody needs its data.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim_cluster.connection import write_kubeconfig
from sim_cluster.controlplane import credentials, roles
from sim_cluster.processes import StartError, free_ports, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from sim_cluster.controlplane.credentials import Credentials
    from sim_cluster.processes import Child

_START_TIMEOUT_S = 120.0
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """What runs, and the administrator's way in."""

    kubeconfig: Path
    processes: tuple[Child, ...]


@contextlib.asynccontextmanager
async def serving(programs: roles.Programs, folder: Path) -> AsyncIterator[ControlPlane]:
    """Run all roles with their files below `folder`; yield when clients can start to work."""
    files = credentials.create(folder, service_ip=roles.SERVICE_IP)
    with contextlib.ExitStack() as stack:
        yield await _started(programs, files, folder, stack)


async def _started(
    programs: roles.Programs, files: Credentials, folder: Path, stack: contextlib.ExitStack
) -> ControlPlane:
    """Start it; somebody may take a port between our look and the bind, so try again."""
    for left in range(_TRIES - 1, -1, -1):
        attempt = stack.enter_context(contextlib.ExitStack())
        try:
            return await _attempt(programs, files, folder, attempt)
        except StartError as error:
            attempt.close()
            if left == 0 or "address already in use" not in str(error):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


async def _attempt(
    programs: roles.Programs, files: Credentials, folder: Path, stack: contextlib.ExitStack
) -> ControlPlane:
    port, etcd_port, peer_port = free_ports(3)
    database = roles.etcd(programs, folder, client_port=etcd_port, peer_port=peer_port)
    server = roles.apiserver(programs, files, port=port, etcd_port=etcd_port)
    etcd = stack.enter_context(running("etcd", database, folder / "etcd.log"))
    apiserver = stack.enter_context(running("apiserver", server, folder / "apiserver.log"))
    probe = _Probe(f"https://127.0.0.1:{port}", files)
    await until(probe.is_ready, apiserver, timeout_s=_START_TIMEOUT_S, what="readiness")
    kubeconfig = write_kubeconfig(
        folder / "kubeconfig",
        url=probe.url,
        authority_pem=files.authority.read_text(),
        token=files.admin_token,
    )
    processes = [etcd, apiserver]
    if programs.controller_manager is not None and programs.scheduler is not None:
        manager = roles.controller_manager(programs.controller_manager, kubeconfig, files)
        scheduler = roles.scheduler(programs.scheduler, kubeconfig)
        for name, command in (("controller-manager", manager), ("scheduler", scheduler)):
            child = stack.enter_context(running(name, command, folder / f"{name}.log"))
            processes.append(child)
        await until(
            probe.has_service_account,
            processes[2],
            timeout_s=_START_TIMEOUT_S,
            what="the default ServiceAccount",
        )
    return ControlPlane(kubeconfig=kubeconfig, processes=tuple(processes))


class _Probe:
    """Asks a starting API server how far it is."""

    def __init__(self, url: str, files: Credentials) -> None:
        self.url = url
        self._token = files.admin_token
        self._ssl = ssl.create_default_context(cafile=str(files.authority))

    def is_ready(self) -> bool:
        return self._get("/readyz") == b"ok"

    def has_service_account(self) -> bool:
        raw = self._get("/api/v1/namespaces/default/serviceaccounts")
        return any(
            item["metadata"]["name"] == "default"
            for item in json.loads(raw or b"{}").get("items", ())
        )

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310 (our own https URL)
            self.url + path, headers={"Authorization": f"Bearer {self._token}"}
        )
        try:
            with urllib.request.urlopen(request, context=self._ssl, timeout=5) as answer:  # noqa: S310
                return bytes(answer.read())
        except (urllib.error.URLError, OSError):
            return b""
