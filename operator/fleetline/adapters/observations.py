"""From rows of all fleets to the observations of one: joined on live pods, unknown with reason."""

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetline.adapters.engine_metrics import Quantity, questions
from fleetline.adapters.pod_rows import Model, Place, PodRows
from fleetline.adapters.prometheus import Row
from fleetline.adapters.scope import TAG, Scope
from fleetline.control.ports import Reading, unknown
from fleetline.model.workload import TokenLengths

LEAST_REQUESTS: Final = 20.0
"""Fewer completed requests in a window have no percentile."""


@dataclass(slots=True)
class Rows:
    """Answers of one turn, indexed once for all fleets."""

    places: Mapping[Place, int] | None = None
    """The pods that count, numbered: rows of others are dropped; None: all count."""
    by_pod: dict[str, PodRows] = field(default_factory=dict)
    """By prefix."""
    by_model: dict[Model, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Value by tag."""
    buckets: dict[tuple[Model, str], list[tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """(upper bound, rate) by model and tag."""
    gateway: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """Rate by (namespace, counter/label, model name)."""

    def add_pods(self, rows: Iterable[Row], prefix: str, scope: Scope) -> None:
        """Index rows that have a pod; places, tags and models repeat, and are kept once."""
        found = self.by_pod.get(prefix)
        if found is None:
            found = self.by_pod[prefix] = PodRows(self.places)
        for row in rows:
            labels = row.labels
            place = labels.get(scope.namespace_label, ""), labels.get(scope.pod_label, "")
            found.add(place, labels.get(TAG, ""), model_of(labels, scope), row.value)

    def models_at(self, place: Place) -> set[Model]:
        """Models that a pod shows."""
        return {model for found in self.by_pod.values() for _, model, _ in found.get(place)}

    def add_models(self, rows: Iterable[Row], scope: Scope) -> None:
        """Index rows that have a model."""
        for row in rows:
            self.by_model[model_of(row.labels, scope)][row.labels.get(TAG, "")] = row.value

    def add_buckets(self, rows: Iterable[Row], scope: Scope, prefix: str = "") -> None:
        """Index histogram buckets."""
        for row in rows:
            bound = _bound(row.labels.get("le", ""))
            if bound is not None and row.value >= 0:
                key = model_of(row.labels, scope), prefix + row.labels.get(TAG, "")
                self.buckets[key].append((bound, row.value))

    def add_gateways(self, rows: Iterable[Row], scope: Scope) -> None:
        """Index rates of gateway counters."""
        for row in rows:
            tag = row.labels.get(TAG, "")
            label = tag.rpartition("/")[2]
            key = row.labels.get(scope.namespace_label, ""), tag, row.labels.get(label, "")
            self.gateway[key] = row.value


@dataclass(slots=True, kw_only=True)
class PodView:
    """What the series of a fleet's pods show."""

    values: dict[Quantity, dict[str, float]] = field(default_factory=dict)
    """Value by pod and quantity, of the first metric name that shows it."""
    sources: dict[Quantity, str] = field(default_factory=dict)
    models: set[Model] = field(default_factory=set)


def model_of(labels: Mapping[str, str], scope: Scope) -> Model:
    """Return namespace and model labels of a row."""
    return (
        labels.get(scope.namespace_label, ""),
        *(labels.get(label, "") for label in scope.model_labels),
    )


def view_pods(
    rows: Rows, namespace: str, pods: Sequence[str], prefix: str, model_name: str | None
) -> PodView:
    """
    Gather the rows of some pods.

    Each pod is read by the first candidate name that it shows; two names are never added up.
    """
    view = PodView()
    found = rows.by_pod.get(prefix) or PodRows(None)
    best_ranks: dict[Quantity, int] = {}
    for pod in pods:
        ranks: dict[Quantity, int] = {}
        for tag, model, value in found.get((namespace, pod)):
            if model_name and model_name not in model[1:]:
                continue
            view.models.add(model)
            quantity, name, rank = _source(tag)
            values = view.values.setdefault(quantity, {})
            best = ranks.get(quantity)
            if best is None or rank < best:
                ranks[quantity], values[pod] = rank, value
                if rank < best_ranks.get(quantity, rank + 1):
                    best_ranks[quantity], view.sources[quantity] = rank, name
            elif rank == best:
                values[pod] += value
    return view


@functools.lru_cache(maxsize=1024)
def _source(tag: str) -> tuple[Quantity, str, int]:
    """Quantity and metric name of a tag, and how early the name is among the candidates."""
    plain, name, _ = tag.split("/")
    quantity = Quantity(plain)
    names = [candidate.name for candidate in questions()[quantity].candidates]
    return quantity, name, names.index(name) if name in names else len(names)


def model_sum(rows: Rows, models: Iterable[Model], quantity: Quantity, part: str) -> float | None:
    """Sum of a quantity over models, of its first name that is there; None if none is."""
    for candidate in questions()[quantity].candidates:
        tag = f"{quantity}/{candidate.name}/{part}"
        values = [
            rows.by_model[model][tag]
            for model in models
            if model in rows.by_model and tag in rows.by_model[model]
        ]
        if values:
            return sum(values)
    return None


def model_mean(
    rows: Rows, models: Iterable[Model], quantity: Quantity, *, window_s: float, least: float
) -> Reading:
    """Mean of a histogram over the window, if enough requests completed."""
    chosen = list(models)
    total = model_sum(rows, chosen, quantity, "sum")
    count = model_sum(rows, chosen, quantity, "count")
    if total is None or count is None:
        return unknown(f"no series for {quantity}")
    if count * window_s < least:
        return unknown(f"fewer than {least:g} requests in {window_s:g} s")
    return Reading(max(0.0, total / count))


def percentile(
    rows: Rows,
    models: Iterable[Model],
    quantity: Quantity,
    *,
    percentile: int,
    target_s: float,
    window_s: float,
) -> Reading:
    """
    Measured percentile of a latency, by interpolation in its histogram bucket.

    Unknown if too few requests completed, or if the target lies inside the bucket: then the
    histogram cannot tell whether the objective holds.
    """
    buckets = _merged(rows, models, quantity)
    if not buckets:
        return unknown(f"no series for {quantity}")
    total = buckets[-1][1]
    if total * window_s < LEAST_REQUESTS:
        return unknown(f"fewer than {LEAST_REQUESTS:g} requests in {window_s:g} s")
    wanted = total * percentile / 100.0
    lower_s, below = 0.0, 0.0
    for upper_s, count in buckets:
        if count >= wanted:
            break
        lower_s, below = upper_s, count
    if math.isinf(upper_s):
        return Reading(lower_s)  # at least: nothing is known above the last finite bound
    if lower_s < target_s < upper_s:
        return unknown(f"the histogram bucket from {lower_s:g} to {upper_s:g} s holds the target")
    share = (wanted - below) / (count - below) if count > below else 1.0
    return Reading(lower_s + (upper_s - lower_s) * share)


def length_distribution(rows: Rows, models: Iterable[Model], prefix: str) -> TokenLengths | None:
    """Prompt and output lengths as independent distributions, from their histograms."""
    chosen = list(models)
    prompts = _midpoints(_merged(rows, chosen, Quantity.PROMPT_TOKENS, prefix))
    outputs = _midpoints(_merged(rows, chosen, Quantity.OUTPUT_TOKENS, prefix))
    if not prompts or not outputs:
        return None
    points = [(p, o, wp * wo) for p, wp in prompts for o, wo in outputs]
    return TokenLengths.of(
        np.array([point[0] for point in points]),
        np.array([point[1] for point in points]),
        weights=np.array([point[2] for point in points]),
    )


def _merged(
    rows: Rows, models: Iterable[Model], quantity: Quantity, prefix: str = ""
) -> list[tuple[float, float]]:
    """Cumulative buckets of some models, of the first name that is there; made monotone."""
    chosen = list(models)
    for candidate in questions()[quantity].candidates:
        tag = f"{prefix}{quantity}/{candidate.name}/bucket"
        sums: dict[float, float] = defaultdict(float)
        for model in chosen:
            for bound, rate in rows.buckets.get((model, tag), ()):
                sums[bound] += rate
        if sums:
            most, merged = 0.0, []
            for bound in sorted(sums):
                most = max(most, sums[bound])
                merged.append((bound, most))
            return merged
    return []


def _midpoints(buckets: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """(geometric middle, weight) of each bucket that holds something."""
    points, lower, below = [], 1.0, 0.0
    total = buckets[-1][1] if buckets else 0.0
    for upper, count in buckets:
        if count > below and total > 0:
            end = lower * 2.0 if math.isinf(upper) else max(1.0, upper)
            points.append((math.sqrt(max(1.0, lower) * end), (count - below) / total))
        lower, below = (lower if math.isinf(upper) else max(1.0, upper)), count
    return points


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
