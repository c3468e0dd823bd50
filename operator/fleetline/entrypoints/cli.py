"""
The command line, `fleetline` or `kubectl fleetline`: one module a command, composed here.

Exit codes: 0 ok, 1 a negative finding, 2 wrong use.
"""

import importlib
import importlib.util
import sys
from typing import Annotated

import typer

from fleetline import __version__
from fleetline.errors import FleetlineError

COMMANDS: tuple[str, ...] = (
    "run",
    "plan",
    "curve",
    "rank",
    "describe",
    "predict",
    "replay",
    "explain",
    "doctor",
    "backtest",
    "demo",
)
"""Modules of `fleetline.entrypoints.commands`; each has a function `register(app)`."""

SIMULATED: frozenset[str] = frozenset({"replay", "demo"})
"""Commands that need the simulator (extra `sim`), which the operator's image leaves out."""


def build(commands: tuple[str, ...] = COMMANDS) -> typer.Typer:
    """Compose the application from its commands, or from some of them."""
    app = typer.Typer(
        name="fleetline",
        invoke_without_command=True,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=True,
        rich_markup_mode="markdown",  # units stand in brackets, which are no markup
    )
    app.callback()(version)
    has_simulator = all(importlib.util.find_spec(name) for name in ("sim_cluster", "numba"))
    for command in commands:
        if command in SIMULATED and not has_simulator:
            continue
        importlib.import_module(f"fleetline.entrypoints.commands.{command}").register(app)
    return app


def version(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.")
    ] = False,
) -> None:
    """Size LLM serving fleets to their latency objective."""
    if show_version:
        typer.echo(f"fleetline {__version__}")
        raise typer.Exit


def main() -> None:
    """Run one command; print what a person has to mend as one line."""
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        # Only what runs is imported: the operator has no use for the simulator's compiler.
        build((named,) if named in COMMANDS else COMMANDS)()
    except FleetlineError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
