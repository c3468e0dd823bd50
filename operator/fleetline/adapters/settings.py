"""What the operator is started with: frozen, each default with its reason."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one process."""

    prometheus_url: str
    kubeconfig: Path | None = None
    """None inside a pod: the ServiceAccount's token."""
    namespaces: tuple[str, ...] = ()
    """Where fleets are served; none means everywhere."""
    period_s: float = 15.0
    """Time between turns, the HPA's. [s]"""
    turn_timeout_s: float = 10.0
    """Longest time of one fleet's turn: a hanging write delays nobody else. [s]"""
    request_timeout_s: float = 8.0
    """Longest time of one request to the API server, within a turn. [s]"""
    prometheus_timeout_s: float = 10.0
    """Longest time of one query; a change of a fleet does not wait for it. [s]"""
    prometheus_token_file: str | None = None
    prometheus_ca_file: str | None = None
    scrape_interval_s: float = 15.0
    """To assume until it was read from Prometheus. [s]"""
    namespace_label: str = "namespace"
    pod_label: str = "pod"
    metrics_port: int = 8080
    """0 takes any free port, -1 serves none."""
    health_port: int = 8081
    """0 takes any free port, -1 serves none."""
    bind_address: str = "0.0.0.0"  # noqa: S104 - probes and scrapes come from outside the pod
    leader_election: bool = False
    """One replica needs no Lease; two do, and the chart sets this then."""
    lease_name: str = "fleetline"
    lease_namespace: str = "default"
    identity: str = "fleetline"
    """Who holds the Lease: the pod's name."""
    log_level: str = "info"
    grace_s: float = 20.0
    """Time to end in after SIGTERM, within the pod's 30 s. [s]"""

    @property
    def silent_after_s(self) -> float:
        """A fleet that was not decided for this long makes the health check fail. [s]"""
        return 3 * self.period_s
