"""`fleetline run`: the operator, what the image starts."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from fleetline.adapters.durations import parse_duration_s
from fleetline.adapters.settings import Settings
from fleetline.errors import ManifestError

LEVELS = ("debug", "info", "warning", "error")

PrometheusUrl = Annotated[
    str,
    typer.Option(
        "--prometheus-url",
        envvar="FLEETLINE_PROMETHEUS_URL",
        help="Where Prometheus answers queries.",
    ),
]
Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", help="Kubeconfig file; left out inside a pod.")
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", help="Serve this namespace; may be given several times."),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Serve all namespaces, the default.")
]
Period = Annotated[
    str, typer.Option("--period", "--sync-period", help="Time between two decisions: 15s, or 15.")
]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")]
MetricsPort = Annotated[
    int, typer.Option("--metrics-port", min=-1, max=65535, help="0: any free one; -1: none.")
]
HealthPort = Annotated[
    int, typer.Option("--health-port", min=-1, max=65535, help="0: any free one; -1: none.")
]
BindAddress = Annotated[
    str, typer.Option("--bind-address", help="Address on which health and metrics are served.")
]
LeaderElection = Annotated[
    bool, typer.Option("--leader-elect", help="Act only while holding the Lease.")
]
LeaseName = Annotated[
    str, typer.Option("--lease-name", envvar="FLEETLINE_LEASE_NAME", help="Name of the Lease.")
]
TokenFile = Annotated[
    str | None,
    typer.Option("--prometheus-token-file", help="File with a bearer token for Prometheus."),
]
CaFile = Annotated[
    str | None, typer.Option("--prometheus-ca-file", help="File with the CA of Prometheus.")
]
PodLabel = Annotated[
    str, typer.Option("--pod-label", help="Label of scraped series that holds the pod's name.")
]
NamespaceLabel = Annotated[
    str, typer.Option("--namespace-label", help="Label of scraped series that holds its namespace.")
]


def run(  # noqa: PLR0917 - typer reads options from the signature
    prometheus_url: PrometheusUrl,
    kubeconfig: Kubeconfig = None,
    namespace: Namespaces = None,
    all_namespaces: AllNamespaces = False,  # noqa: FBT002 - a flag
    period: Period = "15s",
    log_level: LogLevel = "info",
    metrics_port: MetricsPort = 8080,
    health_port: HealthPort = 8081,
    bind_address: BindAddress = "0.0.0.0",  # noqa: S104 - probes come from outside the pod
    leader_elect: LeaderElection = False,  # noqa: FBT002 - a flag
    lease_name: LeaseName = "fleetline",
    prometheus_token_file: TokenFile = None,
    prometheus_ca_file: CaFile = None,
    pod_label: PodLabel = "pod",
    namespace_label: NamespaceLabel = "namespace",
) -> None:
    """Run the operator: watch ServingFleets and keep their replicas at their objectives."""
    from fleetline.entrypoints.run import run as run_operator  # noqa: PLC0415 - slow to import

    if namespace and all_namespaces:
        raise ManifestError(
            "--namespace must not be given together with --all-namespaces, got both"
        )
    if log_level not in LEVELS:
        raise ManifestError(f"--log-level must be one of {', '.join(LEVELS)}, got {log_level!r}")
    period_s = period_of(period)
    timeout_s = min(10.0, max(2.0, period_s))
    run_operator(
        Settings(
            prometheus_url=prometheus_url,
            kubeconfig=kubeconfig,
            namespaces=tuple(namespace or ()),
            period_s=period_s,
            turn_timeout_s=timeout_s,
            request_timeout_s=0.8 * timeout_s,
            prometheus_timeout_s=timeout_s,
            prometheus_token_file=prometheus_token_file,
            prometheus_ca_file=prometheus_ca_file,
            namespace_label=namespace_label,
            pod_label=pod_label,
            metrics_port=metrics_port,
            health_port=health_port,
            bind_address=bind_address,
            leader_election=leader_elect,
            lease_name=lease_name,
            lease_namespace=os.environ.get("POD_NAMESPACE", "default"),
            identity=os.environ.get("POD_NAME", socket.gethostname()),
            log_level=log_level,
        )
    )


def period_of(period: str) -> float:
    """Read the option `--period`. [s]"""
    return parse_duration_s("--period", f"{period}s" if period.isdigit() else period)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)
