"""`fleetline explain`: why does this fleet have this many replicas?"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from fleetline.entrypoints import live, options, tables
from fleetline.entrypoints.explaining import explanation, is_negative

NameArgument = Annotated[str, typer.Argument(help="Name of the ServingFleet.", metavar="NAME")]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the fleet; default: the context's."),
]

TABLES: tuple[tuple[str, str], ...] = (
    ("chain", "From arrivals to replicas"),
    ("decision", "The last decision, rule by rule"),
    ("objectives", "Objectives"),
    ("conditions", "Conditions that are not as they should be"),
    ("discovered", "What a replica is built from"),
    ("metrics", "Where the numbers come from"),
)
"""Keys of the explanation that are tables, in the order in which they are read."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(run)


def run(
    name: NameArgument,
    *,
    namespace: NamespaceOption = None,
    kubeconfig: live.KubeconfigOption = None,
    output: live.ShownOption = live.Shown.TABLE,
) -> None:
    """Show why a fleet has the replicas it has: the worked chain with units."""
    told = explanation(asyncio.run(_read(name, namespace, kubeconfig)))
    if output is live.Shown.JSON:
        tables.print_json(told)
    else:
        _print(told)
    if is_negative(told):
        raise typer.Exit(1)


async def _read(name: str, namespace: str | None, given: Path | None) -> dict[str, Any]:
    kubeconfig = live.kubeconfig_of(given)
    where = live.namespace_of(kubeconfig) if namespace is None else namespace
    async with live.connected(kubeconfig) as api:
        return await live.read_fleet(api, where, name)


def _print(told: dict[str, Any]) -> None:
    counts = [told[f"{one}_replicas"] for one in ("current", "desired", "ready")]
    current, desired, ready = (tables.show(count) for count in counts)
    print(f"{told['fleet']}: {told['target']}, mode {told['mode']}")
    print(f"{current} replicas, {ready} ready, {desired} desired: {told['because'] or 'undecided'}")
    if told["answers_generation"] is None:
        print(
            "no operator has looked at this fleet yet: is one running, and serving its namespace?"
        )
    elif not told["is_current"]:
        print("the spec changed since: what follows answers to the one before")
    for key, title in TABLES:
        if told[key]:
            print()
            tables.print_rows(title, told[key], options.Output.TABLE)
