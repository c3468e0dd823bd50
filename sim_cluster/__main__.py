"""`python -m sim_cluster up`: a cluster to try things on, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from sim_cluster import signals, tools
from sim_cluster.backends import Backend
from sim_cluster.controlplane.build import BuildError
from sim_cluster.launch import DEFAULT_NODES, Cluster, cluster
from sim_cluster.nodes import read_node_specs
from sim_cluster.processes import StartError
from sim_cluster.tools import ToolError

_LOOK_S = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 after a signal, 1 if something did not come up or did not stay."""
    options = _parser().parse_args(arguments)
    try:
        with signals.interrupting():
            tools.prometheus()  # fetched the first time
        code = signals.run(lambda: _stay(options))
    except KeyboardInterrupt:
        return 0
    except (StartError, ToolError, BuildError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if code is None else code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sim_cluster", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="bring a cluster up and keep it until SIGINT or SIGTERM")
    up.add_argument("--backend", choices=[*Backend], default=Backend.MEMORY)
    up.add_argument("--kubeconfig", type=Path, help="of the cluster that is there already")
    up.add_argument("--nodes", type=Path, help="YAML list of nodes; default: 4 with 8 H100 each")
    up.add_argument(
        "--startup", default="2s", help="start-up time of pods, e.g. lognormal(60s,0.4)"
    )
    up.add_argument("--no-operator", action="store_true", help="only the cluster, no Fleetline")
    return parser


async def _stay(options: argparse.Namespace) -> int:
    nodes = read_node_specs(options.nodes) if options.nodes else DEFAULT_NODES
    async with cluster(
        options.backend,
        nodes=nodes,
        operator=not options.no_operator,
        kubeconfig=options.kubeconfig,
        startup=options.startup,
        report=_tell,
    ) as here:
        print(f"ready kubeconfig={here.kubeconfig} prometheus={here.prometheus_url}", flush=True)
        await _while_all_is_well(here)
        return 1


async def _while_all_is_well(here: Cluster) -> None:
    """Return when a process that belongs to the cluster has ended by itself."""
    children = [*here.api.processes, *([here.operator] if here.operator else ())]
    while True:
        for child in children:
            if child.exit_code is not None:
                _tell(f"{child.name} ended with exit code {child.exit_code}: {child.last_words()}")
                return
        await asyncio.sleep(_LOOK_S)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
