"""`fleetline doctor`: is everything there that the operator needs? One line a question."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.prometheus import Prometheus, PrometheusError
from fleetline.adapters.scope import Scope, model_labels_of
from fleetline.adapters.snapshot import SnapshotReader
from fleetline.control.turn import PERIOD_S
from fleetline.entrypoints import checks_prometheus, live, tables
from fleetline.entrypoints.checks_definitions import check_definitions, check_server
from fleetline.entrypoints.checks_fleets import Site, check_fleets, check_nodes, understand
from fleetline.entrypoints.checks_lease import check_lease
from fleetline.entrypoints.checks_permissions import AccessReviews, check_permissions
from fleetline.entrypoints.commands.run import (
    CaFile,
    LeaseName,
    NamespaceLabel,
    Period,
    PodLabel,
    TokenFile,
    period_of,
)
from fleetline.entrypoints.findings import Finding, State, counts, failed, ok, warning
from fleetline.entrypoints.sight import look
from fleetline.errors import ObservationError

QUERY_DEADLINE_S: Final = 10.0
COLORS: Final = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red"}

PrometheusUrl = Annotated[
    str | None,
    typer.Option(
        "--prometheus-url",
        envvar="FLEETLINE_PROMETHEUS_URL",
        help="Where Prometheus answers queries; left out, metrics are not checked.",
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", "-n", help="Check this namespace; may be given several times; default: all."
    ),
]
LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        "--lease-namespace",
        envvar="POD_NAMESPACE",
        help="Namespace of the operator and its Lease; default: the context's.",
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="Whose permissions to check, such as system:serviceaccount:NAMESPACE:NAME; "
        "default: those of the kubeconfig, or of the pod.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be examined."""

    namespaces: tuple[str, ...] = ()
    prometheus_url: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    pod_label: str = "pod"
    namespace_label: str = "namespace"
    user: str | None = None
    period_s: float = PERIOD_S
    lease_namespace: str = "default"
    lease_name: str = "fleetline"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(run)


def run(
    *,
    kubeconfig: live.KubeconfigOption = None,
    prometheus_url: PrometheusUrl = None,
    namespace: Namespaces = None,
    prometheus_token_file: TokenFile = None,
    prometheus_ca_file: CaFile = None,
    pod_label: PodLabel = "pod",
    namespace_label: NamespaceLabel = "namespace",
    as_user: As = None,
    period: Period = "15s",
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = "fleetline",
    output: live.ShownOption = live.Shown.TABLE,
) -> None:
    """Check everything that the operator needs, and say how to mend what is missing."""
    file = live.kubeconfig_of(kubeconfig)
    question = Question(
        namespaces=tuple(namespace or ()),
        prometheus_url=prometheus_url,
        token_file=prometheus_token_file,
        ca_file=prometheus_ca_file,
        pod_label=pod_label,
        namespace_label=namespace_label,
        user=as_user,
        period_s=period_of(period),
        lease_namespace=lease_namespace or live.namespace_of(file),
        lease_name=lease_name,
    )
    findings = asyncio.run(examine(file, question))
    if output is live.Shown.JSON:
        rows = [asdict(one) for one in findings]
        tables.print_json({**counts(findings), "findings": rows})
    else:
        for one in findings:
            typer.secho(str(one), fg=COLORS[one.state])
        print(", ".join(f"{count} {state}" for state, count in counts(findings).items()))
    if any(one.state is State.FAILED for one in findings):
        raise typer.Exit(1)


async def examine(kubeconfig: Path | None, question: Question) -> list[Finding]:
    """Check the API server, then every fleet, then Prometheus; nothing is written."""
    async with live.connected(kubeconfig) as api:
        reviews = AccessReviews(api, question.user)
        server = await check_server(api)
        if server.state is State.FAILED:
            return [server]
        findings = [server, *await check_definitions(api)]
        findings += await check_permissions(reviews, question.namespaces)
        findings.append(await check_lease(api, question.lease_namespace, question.lease_name))
        try:
            view = await SnapshotReader(api, question.namespaces).read()
        except ObservationError as error:
            mend = "see definitions and permissions above, or look at the API server"
            return [*findings, failed("cluster", "snapshot", str(error), mend)]
        objects, understood = understand(view.fleets)
        cluster = KubernetesCluster(api, load_catalog())
        cluster.look_at(view, objects)
        site = Site(api, cluster, reviews, view)
        findings += [*check_nodes(site), *understood, *await check_fleets(site, objects)]
        if not view.fleets:
            findings.append(ok("fleets", ", ".join(question.namespaces) or "all", "there are none"))
        return [*findings, *await _check_prometheus(question, cluster, objects)]


async def _check_prometheus(
    question: Question, cluster: KubernetesCluster, objects: Sequence[FleetObject]
) -> list[Finding]:
    url = question.prometheus_url
    if url is None:
        mend = "give --prometheus-url, as the operator has it"
        return [warning("prometheus", "metrics", "not checked: no URL was given", mend)]
    prometheus = Prometheus(
        url,
        deadline_s=QUERY_DEADLINE_S,
        token_file=question.token_file,
        ca_file=question.ca_file,
    )
    try:
        return await _look(question, prometheus, url, cluster, objects)
    except PrometheusError as error:
        return [checks_prometheus.unreachable(url, error)]
    finally:
        prometheus.close()


async def _look(
    question: Question,
    prometheus: Prometheus,
    url: str,
    cluster: KubernetesCluster,
    objects: Sequence[FleetObject],
) -> list[Finding]:
    scope = Scope(
        namespaces=tuple(sorted({one.fleet.namespace for one in objects})),
        model_labels=model_labels_of(objects),
        namespace_label=question.namespace_label,
        pod_label=question.pod_label,
    )
    engines = EngineMetrics(
        prometheus,
        pods_of=cluster.pods_of,
        period_s=question.period_s,
        scrape_interval_s=PERIOD_S,
        namespace_label=question.namespace_label,
        pod_label=question.pod_label,
    )
    sight = await look(prometheus, engines, objects, scope, period_s=question.period_s)
    findings = [ok("prometheus", url, "it answers")]
    findings += checks_prometheus.check_clock(url, prometheus.clock_skew_s)
    for one in objects:
        findings += await checks_prometheus.check_series(sight, one, cluster.pods_of(one.fleet))
    return findings
