"""What `fleetline replay` reads before it runs: traces, lengths, and the fleet in question."""

import dataclasses
from pathlib import Path

import typer

from fleetline.adapters.catalog import load_catalog
from fleetline.entrypoints import options
from fleetline.errors import ManifestError
from fleetline.replay.drawing import LengthQuantiles, read_lengths
from fleetline.replay.fleet_file import FleetFile, read_fleet_file
from fleetline.replay.scenario import Scenario, default_max_replicas, first_replicas
from fleetline.replay.traces import Trace, is_trace
from sim_cluster.serving.startup import StartupTime


def fleet_of(
    fleet: Path | None,
    names: tuple[str | None, str | None],
    objective: list[str],
    *,
    engine: options.EngineOptions,
    split: options.SplitOptions,
) -> FleetFile:
    """Read the fleet from its file, or put it together from options; model and accelerator."""
    (model, accelerator), catalog = names, load_catalog()
    if fleet is not None:
        read = read_fleet_file(fleet, catalog, accelerator)
        if objective:
            given = tuple(options.parse_objectives(objective))
            read = dataclasses.replace(read, objectives=given)
        return read
    if model is None or accelerator is None:
        raise ManifestError("--model and --accelerator, or --fleet, must be given, got neither")
    hardware = catalog.accelerator(accelerator)
    return FleetFile(
        replica=options.build_replica(catalog, model, hardware, engine, split),
        objectives=tuple(options.parse_objectives(objective)),
        price_usd_per_hour=catalog.price_usd_per_hour(accelerator),
    )


def lengths_of_option(text: str | None) -> LengthQuantiles | None:
    """Read `FILE` or `FILE:SERIES`."""
    if text is None:
        return None
    if Path(text).exists():
        return read_lengths(Path(text))
    name, _, series = text.rpartition(":")
    return read_lengths(Path(name or text), series if name else None)


def files_of(paths: list[Path]) -> list[Path]:
    """Find the traces in files and folders; say on stderr what else lies in a folder."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(path.glob("*.csv")) + sorted(path.glob("*.csv.gz"))
        traces = [one for one in inside if is_trace(one)]
        for one in inside:
            if one not in traces:
                typer.echo(f"{one.name}: not a trace, left out", err=True)
        files += traces
    if not files:
        raise ManifestError("TRACE must be at least one trace file, got none")
    return files


def scenario_of(
    trace: Trace,
    file: FleetFile,
    *,
    startup: tuple[float, float],
    period_s: float,
    scrape_s: float,
    dispersion: float,
    initial_replicas: int | None,
    seed: int,
) -> Scenario:
    """Put one question together; `startup` is the median [s] and how far it varies."""
    startup_s, spread = startup
    most = file.max_replicas or default_max_replicas(
        trace, file.replica, file.objectives, dispersion=dispersion
    )
    first = initial_replicas or first_replicas(
        trace, file.replica, file.objectives, dispersion=dispersion, max_replicas=most
    )
    return Scenario(
        trace=trace,
        replica=file.replica,
        objectives=file.objectives,
        startup=StartupTime.spread(startup_s, spread),
        startup_s=startup_s,
        period_s=period_s,
        scrape_s=scrape_s,
        dispersion=dispersion,
        min_replicas=file.min_replicas,
        max_replicas=most,
        initial_replicas=max(file.min_replicas, first),
        seed=seed,
        price_usd_per_hour=file.price_usd_per_hour,
        queue_drain_s=file.queue_drain_s,
        behavior=file.behavior,
    )
