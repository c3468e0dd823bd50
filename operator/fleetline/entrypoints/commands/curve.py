"""`fleetline curve`: throughput against latency, with the ridge, the knee, the cut and the cost."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fleetline.adapters.catalog import load_catalog
from fleetline.control.curve import Curve, CurvePoint, draw_curve
from fleetline.entrypoints import options, plots, tables
from fleetline.entrypoints.chains import chain_rows, tail_percentile
from fleetline.errors import ManifestError
from fleetline.model.branches import Branches, branches
from fleetline.model.operating_point import operate

MILLI = 1e3
PLOT_FORMATS = (".svg", ".png", ".html")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("curve")(options.expanded(run))


def run(
    *,
    model: options.ModelOption,
    accelerator: Annotated[str, typer.Option(help="Catalogue name of the accelerator.")],
    objective: Annotated[
        list[str] | None, typer.Option(help="METRIC:PERCENTILE:TARGET; cuts the curve.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests per second at one replica [1/s].")
    ] = None,
    claim: Annotated[
        float | None,
        typer.Option(help="Output tokens per second and accelerator: can it be? Exit 1 if not."),
    ] = None,
    split: options.SplitOptions,
    requests: options.WorkloadOptions,
    engine: options.EngineOptions,
    price: Annotated[
        float | None, typer.Option(help="USD an hour for one accelerator; default: catalogue.")
    ] = None,
    plot: Annotated[
        list[Path] | None, typer.Option(help="Write a picture: .svg, .png or .html.")
    ] = None,
    output: options.OutputOption = options.Output.TABLE,
) -> None:
    """Draw what one replica does from idle to saturation, and where its limits are."""
    for path in plot or []:
        if path.suffix not in PLOT_FORMATS:
            raise ManifestError(
                f"--plot must end in one of {', '.join(PLOT_FORMATS)}, got {path.name!r}"
            )
    catalog = load_catalog()
    replica = options.build_replica(catalog, model, catalog.accelerator(accelerator), engine, split)
    workload = requests.read()
    objectives = [options.parse_objective(text) for text in objective or []]
    curve = draw_curve(
        replica,
        workload,
        objectives=objectives,
        arrival_rate_per_s=rate,
        price_usd_per_hour=catalog.price_usd_per_hour(accelerator) if price is None else price,
    )
    title = f"{replica.architecture.name} on {split.tensor_parallel} x {replica.accelerator.name}"
    at_per_s = load_of_interest(curve, rate)
    marks = named_places(curve, replica.accelerators)
    marks += branch_rows(branches(replica, workload, at_per_s), at_per_s)
    point = operate(replica, workload, at_per_s)
    chain = chain_rows(point, tail_percentile(objectives)) if point.is_stable else []
    if output is options.Output.JSON:
        points = [asdict(point) for point in curve.points]
        tables.print_json({"title": title, "marks": marks, "points": points, "chain": chain})
    elif output is options.Output.CSV:
        tables.print_rows(title, [asdict(point) for point in curve.points], output)
    else:
        tables.print_rows(title, [short_row(point) for point in curve.points[::2]], output)
        plots.print_curve(title, curve)
        tables.print_rows("Places on the curve", marks, output)
        tables.print_rows(f"Latency at {at_per_s:.4g} requests/s, link by link", chain, output)
    for path in plot or []:
        plots.write_curve(path, title, curve, marks)
    if claim is not None and not judge_claim(curve, replica.accelerators, claim):
        raise typer.Exit(1)


def short_row(point: CurvePoint) -> dict[str, Any]:
    """Columns that fit a terminal, in people's units."""
    return {
        "req/s": point.arrival_rate_per_s,
        "in flight": point.concurrency,
        "output tok/s": point.output_token_rate_per_s,
        "TTFT ms": point.time_to_first_token_s * MILLI,
        "p95 ms": point.time_to_first_token_p95_s * MILLI,
        "TPOT ms": point.time_per_output_token_s * MILLI,
        "p95 ms ": point.time_per_output_token_p95_s * MILLI,
        "loop gain": point.loop_gain,
        "goodput/s": point.goodput_per_s,
        "memory": f"{point.bandwidth_utilization:.0%}",
        "compute": f"{point.flop_utilization:.0%}",
        "USD/Mtok": point.cost_usd_per_million_tokens,
    }


def named_places(curve: Curve, accelerators: int) -> list[dict[str, Any]]:
    """List the ridge, the knee, the cut, the operating point and saturation, each with its unit."""
    best = max(point.output_token_rate_per_s for point in curve.points) / accelerators
    rows: list[tuple[str, float | str | None, str]] = [
        ("ridge (weights alone)", curve.weights_ridge_sequences, "sequences"),
        ("ridge (with KV cache)", curve.ridge_sequences, "sequences"),
        ("KV cache full", curve.kv_limit_requests, "sequences"),
        ("knee", curve.knee.arrival_rate_per_s, "requests/s"),
        ("knee", curve.knee.concurrency, "requests in flight"),
    ]
    if curve.cut is not None:
        rows += [
            ("ceiling at the objectives", curve.cut.rate_per_s, "requests/s"),
            ("ceiling at the objectives", curve.cut.concurrency, "requests in flight"),
            ("limit", str(curve.cut.limit), curve.cut.because),
        ]
    if curve.operating is not None:
        at = curve.operating
        rows += [
            ("operating point", at.arrival_rate_per_s, "requests/s"),
            ("bandwidth in use", at.bandwidth_utilization, "of the data sheet"),
            ("arithmetic in use", at.flop_utilization, "of the data sheet"),
            ("loop gain", at.loop_gain, ""),
            ("cost", at.cost_usd_per_million_tokens, "USD/10^6 output tokens"),
        ]
        if curve.cut is not None and curve.cut.rate_per_s > 0:
            share = at.arrival_rate_per_s / curve.cut.rate_per_s
            rows.append(("share of the ceiling in use", share, "what counts, not GPU utilization"))
    rows += [
        ("saturation", curve.capacity_per_s, "requests/s"),
        ("most output", best, "tokens/s and accelerator"),
    ]
    return [{"place": place, "value": value, "unit": unit} for place, value, unit in rows]


def load_of_interest(curve: Curve, rate_per_s: float | None) -> float:
    """Rate asked for, else the ceiling, else the knee. [1/s]"""
    if rate_per_s is not None:
        return rate_per_s
    if curve.cut is not None and curve.cut.rate_per_s > 0:
        return curve.cut.rate_per_s
    return curve.knee.arrival_rate_per_s


def branch_rows(both: Branches, rate_per_s: float) -> list[dict[str, Any]]:
    """List where the stable branch ends, and what a congested replica serves."""
    rows: list[tuple[str, float | str, str]] = [
        ("stable and unstable branch meet", both.meeting_rate_per_s, "requests/s"),
        ("a congested replica serves", both.congested_rate_per_s, "requests/s"),
        (f"stable branch at {rate_per_s:.4g} requests/s", both.stable_requests, "sequences"),
    ]
    if both.is_metastable:
        rows.append(("unstable branch: no way back from", both.unstable_requests, "sequences"))
    return [{"place": place, "value": value, "unit": unit} for place, value, unit in rows]


def judge_claim(curve: Curve, accelerators: int, claim_per_s: float) -> bool:
    """Say whether a token rate per accelerator is possible for this model and these lengths."""
    best = max(point.output_token_rate_per_s for point in curve.points) / accelerators
    possible = claim_per_s <= best
    verdict = "possible" if possible else "not possible"
    typer.echo(
        f"{claim_per_s:g} token/s per accelerator is {verdict}: saturation is at {best:.4g} "
        f"token/s and accelerator for these lengths and slots",
        err=True,
    )
    return possible
