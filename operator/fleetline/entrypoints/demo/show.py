"""The demo from the first line to the last: cluster up, performance, summary, page."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from fleetline.entrypoints.demo.page import UNITS, page
from fleetline.entrypoints.demo.performance import Performance
from fleetline.entrypoints.demo.recorder import Recorder
from fleetline.entrypoints.demo.scenario import Scenario
from fleetline.entrypoints.demo.screen import view
from fleetline.entrypoints.demo.summary import Summary
from sim_cluster import signals, tools
from sim_cluster.api_client import ApiClient
from sim_cluster.controlplane.build import BuildError
from sim_cluster.launch import cluster
from sim_cluster.processes import StartError
from sim_cluster.tools import ToolError

CANNOT_START: Final = (BuildError, StartError, ToolError)
"""What keeps the demo from its end, with a message for a person."""


def perform(backend: str, out: Path) -> Summary | None:
    """Show the demo; None if a signal ended it early, with nothing left behind."""
    console = Console(soft_wrap=True, highlight=False)
    console.print("looking for kubectl and Prometheus (fetched the first time) ...")
    try:
        with signals.interrupting():
            kubectl, _ = tools.kubectl(), tools.prometheus()
        return signals.run(lambda: show(backend, out, console, kubectl))
    except KeyboardInterrupt:
        return None


async def show(backend: str, out: Path, console: Console, kubectl: Path) -> Summary:
    """Perform on a cluster of its own; write the summary and the page below `out`."""
    scenario = Scenario()
    console.print(f"starting a local cluster ({backend}), Prometheus and the operator ...")
    async with cluster(
        backend,
        nodes=[scenario.nodes],
        operator=True,
        startup=scenario.startup,
        seed=scenario.seed,
        scrape_interval_s=scenario.scrape_s,
        operator_arguments=["--period", f"{round(scenario.period_s * 1000)}ms"],
        report=console.print,
    ) as here:
        hint = f"{_short(kubectl)} --kubeconfig {here.kubeconfig} get servingfleets"
        console.print(f"look by yourself:  {hint}")
        async with ApiClient.from_kubeconfig(here.kubeconfig, user_agent="demo") as client:
            with view(scenario, lambda: hint) as shown:
                performance = Performance(
                    cluster=here, client=client, scenario=scenario, view=shown
                )
                summary = await performance.run()
    _write(scenario, performance.recorder, summary, out)
    _print(console, summary, out)
    return summary


def _write(scenario: Scenario, recorder: Recorder, summary: Summary, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    summary.write(out / "summary.json")
    recorder.write(out / "seconds.csv")
    (out / "index.html").write_text(page(scenario, recorder, summary), "utf-8")


def _short(path: Path) -> Path:
    """Spell a path relative to where the user stands, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _print(console: Console, summary: Summary, out: Path) -> None:
    console.print()
    for name, value in asdict(summary).items():
        number = f"{value:.3f}" if isinstance(value, float) else str(value)
        console.print(f"{name.replace('_', ' '):24}{number:>10}  {UNITS[name]}")
    saved = 1 - summary.gpu_hours / summary.static_peak_gpu_hours
    console.print(f"{saved:.0%} fewer GPU-hours than a fleet sized for the peak all day")
    console.print(f"plots: {out / 'index.html'}   numbers: {out / 'summary.json'}")
