"""`fleetline demo`: the real operator on a local cluster, through a day's load in minutes."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from fleetline.errors import ManifestError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(run)


def run(
    *,
    backend: Annotated[
        str, typer.Option(help="API server: memory, controlplane or kubeconfig.")
    ] = "memory",
    out: Annotated[Path, typer.Option(help="Folder for the summary and the page.")] = Path(
        "build/demo"
    ),
) -> None:
    """Watch replicas follow the load; exit code 1 if the demo did not keep what it says."""
    try:
        from fleetline.entrypoints.demo.show import show  # noqa: PLC0415 - needs the extra `sim`
    except ImportError as error:
        raise ManifestError(
            f"cannot start the demo: {error.name} is not installed; install fleetline[sim,plots]"
        ) from error
    try:
        summary = asyncio.run(show(backend, out))
    except KeyboardInterrupt:
        typer.echo("stopped")
        raise typer.Exit(0) from None
    for shortfall in summary.shortfalls:
        typer.echo(f"not kept: {shortfall}")
    if summary.shortfalls:
        raise typer.Exit(1)
