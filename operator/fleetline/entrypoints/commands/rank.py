"""`fleetline rank`: accelerators by cost per million output tokens at the objective."""

from typing import Annotated, Any

import typer

from fleetline.adapters.catalog import Catalog, load_catalog
from fleetline.control.plan import Question
from fleetline.control.rank import Offer, Ranked, best_of_each, rank
from fleetline.entrypoints import options, tables
from fleetline.errors import ManifestError
from fleetline.model.hardware import Precision

COMMON_SPLITS = (1, 2, 4, 8)
"""Tensor parallelism within one server of eight accelerators."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rank")(options.expanded(run))


def run(
    *,
    model: options.ModelOption,
    rate: Annotated[float, typer.Option(help="Requests per second at the whole fleet [1/s].")],
    objective: options.ObjectiveOption,
    accelerator: Annotated[
        list[str] | None, typer.Option(help="Catalogue names; default: all with a price.")
    ] = None,
    price: Annotated[
        list[str] | None, typer.Option(help="NAME=USD an hour for one, over the catalogue's.")
    ] = None,
    tensor_parallel: Annotated[
        list[int] | None, typer.Option(help="Splits to try; default: 1, 2, 4, 8.")
    ] = None,
    requests: options.WorkloadOptions,
    weight_precision: Annotated[
        list[Precision] | None, typer.Option(help="Formats to try; default: as published.")
    ] = None,
    engine: options.EngineOptions,
    all_splits: Annotated[
        bool, typer.Option("--all-splits", help="Show every split, not the best of each.")
    ] = False,
    output: options.OutputOption = options.Output.TABLE,
) -> None:
    """Rank accelerators by what a million output tokens cost while the objectives hold."""
    catalog = load_catalog()
    offers = read_offers(catalog, accelerator or [], price or [])
    question = Question(
        replica=options.build_replica(catalog, model, offers[0].accelerator, engine),
        workload=requests.read(),
        arrival_rate_per_s=rate,
        objectives=options.parse_objectives(objective),
    )
    ranked = rank(
        question,
        offers,
        tensor_parallel=tensor_parallel or COMMON_SPLITS,
        weight_precisions=weight_precision or [question.replica.weight_precision],
    )
    shown = ranked if all_splits else best_of_each(ranked)
    tables.print_rows(f"{model}: cost at the objectives", [as_row(one) for one in shown], output)
    if all(one.answer is None for one in shown):
        raise typer.Exit(1)


def read_offers(catalog: Catalog, names: list[str], prices: list[str]) -> list[Offer]:
    """
    Accelerators to compare, with catalogue prices unless told otherwise.

    Raises
    ------
    ManifestError
        If a name is unknown or a price is not a number above zero.
    """
    told: dict[str, float] = {}
    for text in prices:
        name, _, amount = text.partition("=")
        try:
            told[catalog.accelerator_key(name)] = float(amount)
        except ValueError as error:
            raise ManifestError(f"--price must be NAME=USD, got {text!r}") from error
        if not told[catalog.accelerator_key(name)] > 0:
            raise ManifestError(f"--price must be > 0 USD/h, got {text!r}")
    keys = [catalog.accelerator_key(name) for name in names]
    if not keys:
        priced = {**catalog.prices_usd_per_hour, **told}
        keys = [key for key in priced if catalog.accelerators[key].accelerator is not None]
    return [
        Offer(
            accelerator=catalog.accelerator(key),
            price_usd_per_hour=told.get(key, catalog.price_usd_per_hour(key)),
        )
        for key in keys
    ]


def as_row(ranked: Ranked) -> dict[str, Any]:
    """One line of the ranking."""
    answer = ranked.answer
    return {
        "accelerator": ranked.accelerator,
        "tensor parallel": ranked.tensor_parallel,
        "weights": str(ranked.weight_precision),
        "replicas": answer.replicas if answer else None,
        "accelerators": answer.accelerators if answer else None,
        "ceiling req/s": answer.ceiling.rate_per_s if answer else None,
        "limit": str(answer.ceiling.limit) if answer else ranked.because,
        "USD/h": answer.cost_usd_per_hour if answer else None,
        "USD/10^6 output tokens": answer.cost_usd_per_million_tokens if answer else None,
    }
