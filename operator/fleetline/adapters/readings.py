"""Readings of one fleet: sums over its pods, means over its models."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fleetline.adapters.engine_metrics import LATENCIES, Quantity
from fleetline.adapters.observations import PodView, Rows, model_mean, model_sum, percentile
from fleetline.adapters.pod_rows import Model
from fleetline.control.ports import Reading, unknown
from fleetline.model.objective import Objective

LEAST_REQUESTS: Final = 5.0
"""Means over fewer requests in a window say nothing."""

LONGEST_INTERVAL_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of one fleet from rows by model."""

    rows: Rows
    models: Sequence[Model]
    apart: Sequence[Model]
    """The models, if no other fleet of the namespace serves them."""
    window_s: float

    def mean_s(self, quantity: Quantity) -> Reading:
        """Mean of a latency. [s]"""
        if not self.apart:
            return unknown("no series, or another fleet serves the same model here")
        return self._mean(quantity, self.apart)

    def percentile_s(self, objective: Objective) -> Reading:
        """Measured percentile of an objective's latency. [s]"""
        return percentile(
            self.rows,
            self.apart,
            LATENCIES[objective.metric],
            percentile=objective.percentile,
            target_s=objective.target_s,
            window_s=self.window_s,
        )

    def prompt_length(self) -> Reading:
        """Mean prompt of requests, from the histogram or else from the counter. [tokens]"""
        mean = self._mean(Quantity.PROMPT_TOKENS, self.models)
        return mean if mean.is_known else self._per_completion(Quantity.PROMPT_TOKENS_TOTAL)

    def output_length(self) -> Reading:
        """
        Mean output of requests: of those that completed, or tokens per completion if more. [tokens]

        After a start, and while the load rises, those that complete are the short ones, but the
        counter of tokens already counts what the long ones have said.
        """
        completed = self._mean(Quantity.OUTPUT_TOKENS, self.models)
        counted = self._per_completion(Quantity.OUTPUT_TOKENS_TOTAL)
        if completed.value is None or counted.value is None:
            return completed if completed.is_known else counted
        return Reading(max(completed.value, counted.value))

    def hit_share(self) -> Reading:
        """Share of prompt tokens found in the prefix cache. 0..1"""
        hits = model_sum(self.rows, self.models, Quantity.PREFIX_HITS, "")
        asked = model_sum(self.rows, self.models, Quantity.PREFIX_QUERIES, "")
        if hits is None or not asked:
            return unknown("no prefix cache queries")
        return Reading(min(1.0, max(0.0, hits / asked)))

    def rate(self, quantity: Quantity) -> Reading:
        """Rate of a counter over all pods. [1/s]"""
        rate = model_sum(self.rows, self.models, quantity, "")
        return unknown(f"no series for {quantity}") if rate is None else Reading(rate)

    def age_s(self) -> Reading:
        """Age of the newest sample. [s]"""
        ages = [
            value
            for model in self.models
            for tag, value in self.rows.by_model.get(model, {}).items()
            if tag.endswith("/age")
        ]
        return Reading(max(0.0, min(ages))) if ages else unknown("no series")

    def _per_completion(self, total: Quantity) -> Reading:
        """Tokens over completed requests. [tokens]"""
        tokens = model_sum(self.rows, self.models, total, "")
        count = model_sum(self.rows, self.models, Quantity.END_TO_END, "count")
        if tokens is None or not count:
            return unknown(f"no series for {total}, or nothing completed")
        if count * self.window_s < LEAST_REQUESTS:
            return unknown(f"fewer than {LEAST_REQUESTS:g} requests in {self.window_s:g} s")
        return Reading(tokens / count)

    def _mean(self, quantity: Quantity, models: Sequence[Model]) -> Reading:
        return model_mean(self.rows, models, quantity, window_s=self.window_s, least=LEAST_REQUESTS)


def pod_sum(view: PodView, quantity: Quantity) -> Reading:
    """Sum over pods; unknown if no pod shows it."""
    values = view.values.get(quantity)
    return Reading(sum(values.values())) if values else unknown(f"no series for {quantity}")


def pod_mean(view: PodView, quantity: Quantity) -> Reading:
    """Mean over pods; unknown if no pod shows it."""
    values = view.values.get(quantity)
    if not values:
        return unknown(f"no series for {quantity}")
    return Reading(statistics.fmean(values.values()))


def scrape_interval_s(entry: object) -> float | None:
    """Median distance of the time stamps of a range vector's series; None if too few. [s]"""
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(values, list) or len(values) < 3:
        return None
    try:
        times = [float(sample[0]) for sample in values]
    except (TypeError, ValueError, IndexError):
        return None
    distance_s = statistics.median(after - before for before, after in pairwise(times))
    return distance_s if 0 < distance_s <= LONGEST_INTERVAL_S else None
