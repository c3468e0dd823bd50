"""`fleetline plan`: objective, workload and accelerator in; replicas, cost and the chain out."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.durations import parse_duration_s
from fleetline.control.plan import Plan, Question, engine_objectives, plan
from fleetline.entrypoints import options, tables
from fleetline.entrypoints.chains import chain_rows, sensitivity_rows, tail_percentile


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(options.expanded(run))


def run(
    *,
    model: options.ModelOption,
    accelerator: Annotated[str, typer.Option(help="Catalogue name of the accelerator.")],
    rate: Annotated[float, typer.Option(help="Requests per second at the whole fleet [1/s].")],
    objective: options.ObjectiveOption,
    split: options.SplitOptions,
    requests: options.WorkloadOptions,
    engine: options.EngineOptions,
    allowance: Annotated[
        str | None, typer.Option(help="Network and gateway, off TTFT and end-to-end, e.g. 30ms.")
    ] = None,
    target_utilization: Annotated[
        float, typer.Option(help="Share of the ceiling that may be used, 0..1.")
    ] = 1.0,
    price: Annotated[
        float | None, typer.Option(help="USD an hour for one accelerator; default: catalogue.")
    ] = None,
    output: options.OutputOption = options.Output.TABLE,
) -> None:
    """Answer how many replicas meet the objectives, what they cost, and why."""
    catalog = load_catalog()
    hardware = catalog.accelerator(accelerator)
    objectives = options.parse_objectives(objective)
    question = Question(
        replica=options.build_replica(catalog, model, hardware, engine, split),
        workload=requests.read(),
        arrival_rate_per_s=rate,
        objectives=objectives,
        allowance_s=parse_duration_s("--allowance", allowance) if allowance else 0.0,
        target_utilization=target_utilization,
        price_usd_per_hour=catalog.price_usd_per_hour(accelerator) if price is None else price,
    )
    answer = plan(question)
    if output is options.Output.JSON:
        tables.print_json(as_json(question, answer))
        return
    title = f"{model} on {hardware.name}: {answer.replicas} replicas"
    tables.print_rows(title, [asdict(step) for step in answer.steps], output)
    if output is options.Output.TABLE:
        tables.print_rows("Latency, link by link", links(question, answer), output)
        tables.print_rows("Objectives", objective_rows(question, answer), output)
        tables.print_rows("A tenth more of it moves the ceiling", knobs(question, answer), output)


def as_json(question: Question, answer: Plan) -> dict[str, Any]:
    """Return the documented keys."""
    return {
        "replicas": answer.replicas,
        "accelerators": answer.accelerators,
        "concurrency": answer.concurrency,
        "residence_seconds": answer.point.residence_time_s,
        "ceiling_rps": answer.ceiling.rate_per_s,
        "limit": str(answer.ceiling.limit),
        "utilization": answer.utilization,
        "loop_gain": answer.point.loop_gain,
        "drain_seconds": answer.drain_s,
        "cost_per_hour": answer.cost_usd_per_hour,
        "cost_per_million_output_tokens": answer.cost_usd_per_million_tokens,
        "steps": [asdict(step) for step in answer.steps],
        "chain": links(question, answer),
        "sensitivity": knobs(question, answer),
        "objectives": objective_rows(question, answer),
    }


def links(question: Question, answer: Plan) -> list[dict[str, Any]]:
    """Return the latency chain at the planned load."""
    percentile = tail_percentile(question.objectives)
    return chain_rows(answer.point, percentile, allowance_s=question.allowance_s)


def knobs(question: Question, answer: Plan) -> list[dict[str, Any]]:
    """Return the elasticities of the ceiling."""
    return sensitivity_rows(
        question.replica,
        question.workload,
        question.objectives,
        replicas=answer.replicas,
        allowance_s=question.allowance_s,
    )


def objective_rows(question: Question, answer: Plan) -> list[dict[str, Any]]:
    """Print what each objective asks and what the fleet will show."""
    inside = engine_objectives(question.objectives, question.allowance_s)
    rows = []
    for asked, engine in zip(question.objectives, inside, strict=True):
        seen_s = answer.point.percentile_s(engine.metric, engine.percentile)
        rows.append(
            {
                "objective": f"{asked.metric} p{asked.percentile}",
                "target_s": asked.target_s,
                "expected_s": seen_s + asked.target_s - engine.target_s,
                "share_of_requests_inside": answer.point.attainment(engine.metric, engine.target_s),
            }
        )
    return rows
