"""The operator as a process beside a simulated cluster, on ports of loopback."""

from __future__ import annotations

import contextlib
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim_cluster.processes import Child, free_ports, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

_START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where the operator answers; chosen before its start, as Prometheus must know."""

    metrics: int
    health: int

    @property
    def metrics_address(self) -> str:
        """Host and port of its own metrics."""
        return f"127.0.0.1:{self.metrics}"


def free_operator_ports() -> Ports:
    """Pick two free ports."""
    metrics, health = free_ports(2)
    return Ports(metrics=metrics, health=health)


@contextlib.asynccontextmanager
async def running_operator(
    kubeconfig: Path,
    prometheus_url: str | None,
    *,
    ports: Ports,
    log: Path,
    arguments: Sequence[str] = (),
) -> AsyncIterator[Child]:
    """Run `fleetline run`; yield when it answers its health check, so after its first round."""
    command = [sys.executable, "-m", "fleetline", "run", "--kubeconfig", str(kubeconfig)]
    command += ["--bind-address", "127.0.0.1", "--metrics-port", str(ports.metrics)]
    command += ["--health-port", str(ports.health)]
    if prometheus_url is not None:
        command += ["--prometheus-url", prometheus_url]
    with running("fleetline", [*command, *arguments], log) as child:

        def is_healthy() -> bool:
            try:
                url = f"http://127.0.0.1:{ports.health}/healthz"
                with urllib.request.urlopen(url, timeout=2) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        await until(is_healthy, child, timeout_s=_START_TIMEOUT_S, what="health")
        yield child
