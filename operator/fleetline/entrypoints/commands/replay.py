"""`fleetline replay`: any policy on any trace, in virtual time; figures, and a page to look at."""

import csv
import dataclasses
import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from fleetline.adapters.durations import parse_duration_s
from fleetline.entrypoints import options, tables
from fleetline.entrypoints.replay_inputs import (
    files_of,
    fleet_of,
    lengths_of_option,
    scenario_of,
)
from fleetline.entrypoints.replay_progress import Progress
from fleetline.replay.answer import Answer, Request, answer, parse_policies
from fleetline.replay.html import page
from fleetline.replay.pool import open_runs
from fleetline.replay.scenario import Scenario
from fleetline.replay.traces import TraceOptions, read_traces

StartupOption = Annotated[
    str, typer.Option("--startup", help="Time until a new replica serves, such as 180s or 3m.")
]
PeriodOption = Annotated[
    str, typer.Option("--period", help="Time between two decisions, such as 15s.")
]
ScrapeOption = Annotated[
    str, typer.Option("--scrape", help="Time between two scrapes of the metrics, such as 15s.")
]
InitialOption = Annotated[
    int | None,
    typer.Option(
        "--initial-replicas", min=1, help="Replicas at the start; default: for the first arrivals."
    ),
]
LeastOption = Annotated[
    int | None,
    typer.Option("--min-replicas", min=1, help="Fewest replicas; default: the fleet's, or 1."),
]
MostOption = Annotated[
    int | None,
    typer.Option(
        "--max-replicas", min=1, help="Most replicas; default: the fleet's, or twice the need."
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", help="Of all that is drawn: the same seed, the same run.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(options.expanded(run))


def run(
    *,
    trace: Annotated[list[Path], typer.Argument(help="Trace files, or folders of them.")],
    policy: Annotated[
        str, typer.Option(help="Names with commas, NAME@best, `all` or `all@best`.")
    ] = "fleetline",
    model: Annotated[str | None, typer.Option(help="Catalogue or published model name.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="Catalogue name.")] = None,
    split: options.SplitOptions,
    fleet: Annotated[
        Path | None, typer.Option(help="A ServingFleet instead of model and objectives.")
    ] = None,
    objective: Annotated[
        list[str] | None, typer.Option(help="METRIC:PERCENTILE:TARGET, repeatable.")
    ] = None,
    startup: StartupOption = "180s",
    startup_spread: Annotated[
        float, typer.Option(min=1, help="Start-ups vary by up to this factor, up and down.")
    ] = 1.0,
    period: PeriodOption = "15s",
    scrape: ScrapeOption = "15s",
    scale: Annotated[float, typer.Option(min=1e-6, help="Factor on the rate of arrivals.")] = 1.0,
    dispersion: Annotated[
        float, typer.Option(min=1, help="Variance over mean of the counts of a rate trace.")
    ] = 1.0,
    lengths: Annotated[
        str | None, typer.Option(help="FILE of field,percentile,value, or FILE:SERIES.")
    ] = None,
    start: Annotated[float, typer.Option(help="Begin of the stretch that is replayed [s].")] = 0.0,
    end: Annotated[float | None, typer.Option(help="End of it [s].")] = None,
    initial_replicas: InitialOption = None,
    min_replicas: LeastOption = None,
    max_replicas: MostOption = None,
    engine: options.EngineOptions,
    seed: SeedOption = 0,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Report every setting of every peer.")
    ] = False,
    bounds: Annotated[bool, typer.Option(help="Compute the clairvoyant bound.")] = True,
    processes: Annotated[int | None, typer.Option(min=1, help="Default: one per core.")] = None,
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster to run on.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page here.")] = None,
    requests_out: Annotated[
        Path | None, typer.Option(help="Write t_s,ttft_s,tpot_s,e2e_s,replica here.")
    ] = None,
    output: options.OutputOption = options.Output.TABLE,
) -> None:
    """Replay traces through a simulated fleet under one or many policies."""
    request = parse_policies(
        policy, sweeps=sweep, has_bounds=bounds, wants_requests=requests_out is not None
    )
    names = (model, accelerator)
    file = fleet_of(fleet, names, objective or [], engine=engine, split=split)
    trace_options = TraceOptions(
        scale=scale,
        dispersion=dispersion,
        lengths=lengths_of_option(lengths),
        start_s=start,
        end_s=end,
        seed=seed,
    )
    if min_replicas is not None:
        file = dataclasses.replace(file, min_replicas=min_replicas)
    if max_replicas is not None:
        file = dataclasses.replace(file, max_replicas=max_replicas)
    startup_s = parse_duration_s("--startup", startup)
    scenarios = [
        scenario_of(
            one,
            file,
            startup=(startup_s, startup_spread),
            period_s=parse_duration_s("--period", period),
            scrape_s=parse_duration_s("--scrape", scrape),
            dispersion=dispersion,
            initial_replicas=initial_replicas,
            seed=seed,
        )
        for path in files_of(trace)
        for one in read_traces(path, trace_options)
    ]
    answers = [_answer(one, request, processes, ray) for one in scenarios]
    if html is not None:
        html.write_text(page(answers), "utf-8")
    if requests_out is not None:
        _write_requests(requests_out, answers)
    _print(answers, output)


def _answer(scenario: Scenario, request: Request, processes: int | None, ray: str | None) -> Answer:
    many = request.sweeps or len(request.order) > 2
    count = processes or ((os.cpu_count() or 1) if many else 1)
    with (
        Progress(scenario.trace.name) as progress,
        open_runs(scenario, progress, processes=count, ray_address=ray) as perform,
    ):
        return answer(scenario, request, perform)


def _print(answers: list[Answer], output: options.Output) -> None:
    if output is options.Output.JSON:
        found = [one.as_json() for one in answers]
        tables.print_json(found[0] if len(found) == 1 else found)
        return
    rows = [row for one in answers for row in _rows(one)]
    tables.print_rows("Replay", rows, output)


def _rows(one: Answer) -> list[dict[str, Any]]:
    figures = one.as_json()
    bound = figures["bounds"].get("clairvoyant")
    fluid = dict.fromkeys(figures["policies"][0]) | {"name": "fluid bound"}
    fluid |= figures["bounds"]["fluid"]
    everyone = [*figures["policies"], *([bound] if bound else []), fluid]
    return [
        {"trace": figures["trace"], **{k: v for k, v in row.items() if k != "parameters"}}
        for row in everyone
    ]


def _write_requests(path: Path, answers: list[Answer]) -> None:
    """Write one file; with several runs one a run, the trace and policy before the suffix."""
    kept = [(a, one) for a in answers for one in a.policies if one.results is not None]
    for one_answer, outcome in kept:
        label = f"-{one_answer.scenario.trace.name}-{outcome.task.name}".replace(":", "-")
        target = path if len(kept) == 1 else path.with_stem(path.stem + label)
        results = outcome.results
        if results is None:
            continue
        with target.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.writer(lines)
            writer.writerow(("t_s", "ttft_s", "tpot_s", "e2e_s", "replica"))
            writer.writerows(
                (f"{t:.6f}", _cell(first), _cell(gap), _cell(whole), replica)
                for t, first, gap, whole, replica in zip(
                    results.t_s.tolist(),
                    results.ttft_s.tolist(),
                    results.tpot_s.tolist(),
                    results.e2e_s.tolist(),
                    results.replica.tolist(),
                    strict=True,
                )
            )


def _cell(value: float) -> str:
    """Nothing stands for what has not happened."""
    return "" if math.isnan(value) else f"{value:.6f}"
