"""`fleetline backtest`: what would have been decided over the last hours, and what ran?"""

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fleetline.adapters.durations import parse_duration_s
from fleetline.adapters.past import Past
from fleetline.adapters.scope import Scope
from fleetline.entrypoints import backtesting, live, options, tables
from fleetline.entrypoints.backtest_page import page
from fleetline.entrypoints.commands.run import (
    CaFile,
    NamespaceLabel,
    Period,
    PodLabel,
    TokenFile,
    period_of,
)
from fleetline.errors import ManifestError
from fleetline.replay.backtest_report import Report, Window, report, row

QUERY_DEADLINE_S: Final = 60.0
SHOWN_WINDOWS: Final = 24
"""Rows of the table; JSON and CSV have all windows."""

NameArgument = Annotated[
    str | None, typer.Argument(help="Name of the ServingFleet; or give --fleet.", metavar="[NAME]")
]
FleetOption = Annotated[
    Path | None,
    typer.Option("--fleet", help="YAML file with the ServingFleet, instead of a live cluster."),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the fleet; default: the context's."),
]
UrlOption = Annotated[
    str,
    typer.Option(
        "--prometheus-url",
        envvar="FLEETLINE_PROMETHEUS_URL",
        help="Where Prometheus answers queries about the past.",
    ),
]
SinceOption = Annotated[
    str, typer.Option("--since", help="How far back: 24h; two hours before it are watched, too.")
]
EndOption = Annotated[
    float | None, typer.Option("--end", help="Unix time of the end [s]; default: now.")
]
StartupOption = Annotated[
    str | None,
    typer.Option("--startup", help="Start-up time of a replica; default: as measured, or 180s."),
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write a self-contained page.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("backtest")(run)


def run(
    name: NameArgument = None,
    *,
    prometheus_url: UrlOption,
    fleet: FleetOption = None,
    namespace: NamespaceOption = None,
    kubeconfig: live.KubeconfigOption = None,
    since: SinceOption = "24h",
    end: EndOption = None,
    startup: StartupOption = None,
    period: Period = "15s",
    prometheus_token_file: TokenFile = None,
    prometheus_ca_file: CaFile = None,
    pod_label: PodLabel = "pod",
    namespace_label: NamespaceLabel = "namespace",
    output: options.OutputOption = options.Output.TABLE,
    html: HtmlOption = None,
) -> None:
    """Replay a fleet's history in Prometheus: what Fleetline would have decided, and what ran."""
    subject = _subject(name, fleet, namespace, kubeconfig)
    step_s, since_s = period_of(period), parse_duration_s("--since", since)
    end_s = (time.time() if end is None else end) // step_s * step_s
    startup_s = (
        backtesting.startup_of(subject)
        if startup is None
        else parse_duration_s("--startup", startup)
    )
    past = Past(
        prometheus_url,
        step_s=step_s,
        deadline_s=QUERY_DEADLINE_S,
        token_file=prometheus_token_file,
        ca_file=prometheus_ca_file,
    )
    scope = Scope(
        namespaces=(subject.one.fleet.namespace,),
        namespace_label=namespace_label,
        pod_label=pod_label,
    )
    begin_s = (end_s - since_s) // step_s * step_s

    async def walk() -> Report:
        try:
            walked = [
                one
                async for one in backtesting.outcomes(
                    subject, past, scope, begin_s=begin_s, end_s=end_s, startup_s=startup_s
                )
            ]
        finally:
            past.close()
        return report(
            walked,
            period_s=step_s,
            startup_s=startup_s,
            accelerators=1 if subject.replica is None else subject.replica.accelerators,
            price_usd_per_hour=subject.price_usd_per_hour,
        )

    found = asyncio.run(walk())
    if html is not None:
        html.write_text(page(subject.one.fleet.key, found), "utf-8")
    _print(subject.one.fleet.key, found, output)
    if found.fleetline.windows_above_ceiling > found.ran.windows_above_ceiling:
        raise typer.Exit(1)


def _subject(
    name: str | None, file: Path | None, namespace: str | None, kubeconfig: Path | None
) -> backtesting.Subject:
    if (name is None) == (file is None):
        got = "neither" if name is None else "both"
        raise ManifestError(f"NAME or --fleet must be given, one of them, got {got}")
    if file is not None:
        return backtesting.file_subject(file, namespace)
    config = live.kubeconfig_of(kubeconfig)
    where = live.namespace_of(config) if namespace is None else namespace
    return asyncio.run(backtesting.live_subject(config, where, str(name)))


def _print(fleet: str, found: Report, output: options.Output) -> None:
    if output is options.Output.JSON:
        tables.print_json({"fleet": fleet, **found.as_json()})
        return
    if output is options.Output.CSV:
        tables.print_rows("", [row(one) for one in found.windows], output)
        return
    told = found.as_json()
    sides: list[dict[str, Any]] = [
        {"": key, "what ran": told["ran"][key], "fleetline": told["fleetline"].get(key)}
        for key in told["ran"]
    ]
    tables.print_rows(f"{fleet}: {len(found.windows)} windows of 5 minutes", sides, output)
    every = max(1, -(-len(found.windows) // SHOWN_WINDOWS))
    shown = [_shown(one) for one in found.windows[::every]]
    tables.print_rows(f"Every {5 * every} minutes, UTC", shown, output)


def _shown(window: Window) -> dict[str, Any]:
    return {
        "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime(window.at_s)),
        "requests/s": window.arrival_rate_per_s,
        "ran": window.ran_replicas,
        "above": window.ran_above,
        "missed": window.ran_missed,
        "fleetline": window.replicas,
        "above ceiling": window.above,
        "reason": window.reason,
    }
