"""Which program plays which role of a control plane, and with what flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sim_cluster.controlplane.credentials import Credentials

# Room for 65,534 Services; the first address is the API server's own.
SERVICE_NETWORK, SERVICE_IP = "10.0.0.0/16", "10.0.0.1"
# Client-side rate limits bind long before the CPU does: at the defaults, about 20 pods/s.
_CLIENT_RATE = ["--kube-api-qps=1000", "--kube-api-burst=2000"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The start of the command line of each role; None where nobody plays it."""

    etcd: Sequence[str | Path]
    apiserver: Sequence[str | Path]
    controller_manager: Sequence[str | Path] | None
    scheduler: Sequence[str | Path] | None

    @property
    def is_complete(self) -> bool:
        """Whether controllers and scheduling are provided as well."""
        return self.controller_manager is not None and self.scheduler is not None


def one_program(program: Path) -> Programs:
    """All roles in the program that `sim_cluster.controlplane.build` makes."""
    return Programs(
        etcd=[program, "etcd"],
        apiserver=[program, "apiserver"],
        controller_manager=[program, "controller-manager"],
        scheduler=[program, "scheduler"],
    )


def assets(folder: Path) -> Programs:
    """Find the programs of a `KUBEBUILDER_ASSETS` folder; only the first two must be there."""
    missing = [name for name in ("etcd", "kube-apiserver") if not (folder / name).exists()]
    if missing:
        raise FileNotFoundError(
            f"KUBEBUILDER_ASSETS must hold etcd and kube-apiserver, got {folder} without "
            f"{' and '.join(missing)}"
        )
    manager, scheduler = folder / "kube-controller-manager", folder / "kube-scheduler"
    complete = manager.exists() and scheduler.exists()
    return Programs(
        etcd=[folder / "etcd"],
        apiserver=[folder / "kube-apiserver"],
        controller_manager=[manager] if complete else None,
        scheduler=[scheduler] if complete else None,
    )


def etcd(programs: Programs, folder: Path, *, client_port: int, peer_port: int) -> list[str | Path]:
    """Command line of the database; without fsync, as its folder is thrown away."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        *(*programs.etcd, f"--data-dir={folder / 'etcd'}"),
        *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
        *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
        *(f"--initial-cluster=default={peer}", "--unsafe-no-fsync", "--log-level=warn"),
    ]


def apiserver(
    programs: Programs, files: Credentials, *, port: int, etcd_port: int
) -> list[str | Path]:
    """Command line of the API server: loopback only, with RBAC and the default admission."""
    command = [
        *(*programs.apiserver, f"--etcd-servers=http://127.0.0.1:{etcd_port}"),
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}"),
        "--endpoint-reconciler-type=none",
        *(f"--tls-cert-file={files.certificate}", f"--tls-private-key-file={files.key}"),
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--service-account-key-file={files.service_account_key}",
        *(f"--token-auth-file={files.tokens}", "--authorization-mode=RBAC"),
        *("--allow-privileged=true", "--profiling=false"),
        *("--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000"),
    ]
    if not programs.is_complete:  # nobody makes the ServiceAccount that pods would need
        command.append("--disable-admission-plugins=ServiceAccount")
    return command


def controller_manager(
    program: Sequence[str | Path], kubeconfig: Path, files: Credentials
) -> list[str | Path]:
    """Command line of the controllers."""
    return [
        *(*program, *_identity(kubeconfig), *_CLIENT_RATE),
        *("--leader-elect=false", "--secure-port=0", "--node-monitor-grace-period=300s"),
        # These would fail for ever on the loopback addresses of simulated pods; ours step in.
        "--controllers=*,-endpoints-controller,-endpointslice-controller",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority}",
    ]


def scheduler(program: Sequence[str | Path], kubeconfig: Path) -> list[str | Path]:
    """Command line of the scheduler."""
    return [
        *(*program, *_identity(kubeconfig), *_CLIENT_RATE),
        *("--leader-elect=false", "--secure-port=0"),
    ]


def _identity(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
