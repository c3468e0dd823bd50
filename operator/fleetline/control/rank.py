"""Which accelerator serves a workload most cheaply: one plan for each way to split the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fleetline.control.plan import Plan, Question, plan
from fleetline.errors import ModelError
from fleetline.model.hardware import Accelerator, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One accelerator with its price."""

    accelerator: Accelerator
    price_usd_per_hour: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One way to serve the workload, or why it cannot be."""

    accelerator: str
    tensor_parallel: int
    weight_precision: Precision
    answer: Plan | None
    because: str = ""
    """Why there is no answer."""


def rank(
    question: Question,
    offers: Sequence[Offer],
    *,
    tensor_parallel: Sequence[int],
    weight_precisions: Sequence[Precision],
) -> list[Ranked]:
    """
    Plan for every combination; cheapest per output token first, unpriced and impossible last.

    Accelerators without a price are ordered by how many of them are needed.
    """
    found = [
        _one(question, offer, tensor, precision)
        for offer in offers
        for tensor in tensor_parallel
        for precision in weight_precisions
    ]
    return sorted(found, key=_order)


def best_of_each(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Keep the best combination of each accelerator, in the same order."""
    kept: dict[str, Ranked] = {}
    for one in ranked:
        kept.setdefault(one.accelerator, one)
    return list(kept.values())


def _one(question: Question, offer: Offer, tensor_parallel: int, precision: Precision) -> Ranked:
    replica = replace(
        question.replica,
        accelerator=offer.accelerator,
        tensor_parallel=tensor_parallel,
        weight_precision=precision,
    )
    asked = replace(question, replica=replica, price_usd_per_hour=offer.price_usd_per_hour)
    try:
        answer, because = plan(asked), ""
    except ModelError as error:
        answer, because = None, str(error)
    return Ranked(
        accelerator=offer.accelerator.name,
        tensor_parallel=tensor_parallel,
        weight_precision=precision,
        answer=answer,
        because=because,
    )


def _order(ranked: Ranked) -> tuple[int, float]:
    if ranked.answer is None:
        return (2, -float(ranked.tensor_parallel))
    if ranked.answer.cost_usd_per_million_tokens is None:
        return (1, float(ranked.answer.accelerators))
    return (0, ranked.answer.cost_usd_per_million_tokens)
