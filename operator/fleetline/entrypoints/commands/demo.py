"""`fleetline demo`: the real operator on a local cluster, through a day's load in minutes."""

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
        from fleetline.entrypoints.demo.show import CANNOT_START, perform  # noqa: PLC0415 - `sim`
    except ImportError as error:
        raise ManifestError(
            f"cannot start the demo: {error.name} is not installed; install fleetline[sim,plots]"
        ) from error
    try:
        summary = perform(backend, out)
    except CANNOT_START as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    if summary is None:
        typer.echo("stopped: nothing is left running")
        return
    for shortfall in summary.shortfalls:
        typer.echo(f"not kept: {shortfall}")
    if summary.shortfalls:
        raise typer.Exit(1)
