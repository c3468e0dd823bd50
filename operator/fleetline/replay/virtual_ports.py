"""
The ports of the control loop over a simulated fleet: Kubernetes and Prometheus in virtual time.

The turn that steers a cluster steers the simulation through these; observations are as old, as
coarse and as incomplete as scrapes are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.adapters.lengths import of_quantiles
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Observations, Pod, Reading, Target, unknown
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths
from fleetline.replay.scrape import (
    E2E_S,
    FINISHED,
    FIRST_TOKENS,
    GAPS_S,
    HIT,
    PREEMPTIONS,
    QUERIED,
    TTFT_S,
    Scraper,
)
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.lives import ReplicaLife

Floats = NDArray[np.float64]

EPOCH_S: Final = 1_764_489_600.0
"""Unix time at which every trace begins: 2025-11-30 08:00 UTC. [s]"""

MEANS_WINDOW_S: Final = 60.0
"""Window of the operator's queries for means and percentiles. [s]"""

HISTOGRAM_WINDOW_S: Final = 1800.0
"""Window of its queries for the buckets of lengths. [s]"""

HISTOGRAM_OF: Final = {
    Metric.TIME_TO_FIRST_TOKEN: "time_to_first_token",
    Metric.INTER_TOKEN_LATENCY: "inter_token_latency",
    Metric.TIME_PER_OUTPUT_TOKEN: "time_per_output_token",
    Metric.END_TO_END: "residence_time",
}

LENGTH_BOUNDS_TOKENS: Final = tuple(
    mantissa * 10**power for power in range(6) for mantissa in (1, 2, 5)
)
"""Buckets of vLLM's `request_prompt_tokens` and `request_generation_tokens`. [tokens]"""


@dataclass(slots=True)
class VirtualCluster:
    """Kubernetes: one target, its pods, and its scale subresource."""

    fleet: FleetSimulation
    replica: Replica
    startup_s: float
    """How long the replicas of the beginning took before the trace began. [s]"""
    writes: int = 0

    async def read_target(self, _: Fleet) -> Target:
        """Show the deployment as it is now."""
        return Target(
            replicas=self.fleet.asked_replicas,
            resource_version=str(self.writes),
            pods=tuple(self._pod(one) for one in self.fleet.lives if math.isnan(one.ended_s)),
            replica=self.replica,
        )

    async def write_replicas(self, _: Fleet, __: Target, replicas: int) -> None:
        """Scale the simulated fleet."""
        self.fleet.scale(replicas)
        self.writes += 1

    def _pod(self, life: ReplicaLife) -> Pod:
        is_ready = life.slot is not None and not life.is_draining
        began_ready = life.ready_s == life.requested_s == 0.0
        created_s = -self.startup_s if began_ready else life.requested_s
        return Pod(
            name=f"replica-{life.number}",
            created_s=EPOCH_S + created_s,
            ready_since_s=EPOCH_S + life.ready_s if is_ready else None,
            is_terminating=life.is_draining,
            is_scheduled=not life.is_pending,
            restarts=life.restarts,
        )


@dataclass(slots=True)
class VirtualMetrics:
    """Prometheus: what the scrapes of one fleet show."""

    scraper: Scraper
    arrivals: Arrivals
    """Of the whole trace; only the lengths of requests that have come are looked at."""
    now_s: float = 0.0
    _lengths: tuple[float, TokenLengths | None] = field(default=(-math.inf, None))

    async def observe(self, fleets: Sequence[Fleet]) -> Mapping[str, Observations]:
        """Answer for every fleet alike: there is one."""
        return {fleet.key: self.read(fleet.objectives) for fleet in fleets}

    def read(self, objectives: Sequence[Objective]) -> Observations:
        """Look at the store now."""
        scraper, seen = self.scraper, self.scraper.latest
        if seen is None:
            return _nothing()
        past = scraper.increase(self.now_s, MEANS_WINDOW_S)
        prompt, output = scraper.mean_lengths(self.now_s, MEANS_WINDOW_S)
        serving = ~seen.is_draining
        finished = past[FINISHED]
        gaps = scraper.buckets(past, "inter_token_latency")[1].sum()
        return Observations(
            arrival_rate_per_s=_reading(scraper.arrival_rate_per_s(self.now_s), "one scrape"),
            running_requests=Reading(float(seen.running.sum())),
            waiting_requests=Reading(float(seen.waiting.sum() + seen.held_requests)),
            kv_cache_utilization=_mean(seen.kv_usage[serving]),
            prompt_tokens=_reading(prompt, "no request got its first token in a minute"),
            output_tokens=_reading(output, "no request finished in a minute"),
            prefix_hit_share=_ratio(past[HIT], past[QUERIED]),
            time_to_first_token_s=_ratio(past[TTFT_S], past[FIRST_TOKENS]),
            inter_token_latency_s=_ratio(past[GAPS_S], gaps),
            end_to_end_s=_ratio(past[E2E_S], finished),
            latency_percentiles_s={str(one): self._percentile(past, one) for one in objectives},
            preemption_rate_per_s=Reading(float(past[PREEMPTIONS]) / MEANS_WINDOW_S),
            sample_age_s=Reading(self.now_s - seen.now_s),
            reporting_replicas=int(serving.sum()),
            lengths=self._recent_lengths(seen.now_s),
        )

    def _percentile(self, past: Floats, objective: Objective) -> Reading:
        bounds, counts = self.scraper.buckets(past, HISTOGRAM_OF[objective.metric])
        value = histogram_quantile(bounds, counts, objective.percentile / 100.0)
        return _reading(value, "no request in a minute")

    def _recent_lengths(self, scraped_s: float) -> TokenLengths | None:
        """Lengths of the last half hour as histograms show them; read anew once a minute."""
        if scraped_s - self._lengths[0] < 60.0:
            return self._lengths[1]
        first, last = np.searchsorted(
            self.arrivals.t_s, [scraped_s - HISTOGRAM_WINDOW_S, scraped_s]
        )
        found = None
        if last > first:
            found = of_quantiles(
                _bucket_percentiles(self.arrivals.prompt_tokens[first:last]),
                _bucket_percentiles(self.arrivals.output_tokens[first:last]),
            )
        self._lengths = (scraped_s, found)
        return found


def histogram_quantile(bounds_s: Floats, counts: Floats, quantile: float) -> float | None:
    """Interpolate inside a bucket as Prometheus does; beyond the last bound return that bound."""
    total = counts.sum()
    if not total > 0:
        return None
    rank = quantile * total
    cumulative = np.cumsum(counts)
    index = int(np.searchsorted(cumulative, rank))
    if index >= bounds_s.size:
        return float(bounds_s[-1])
    below = cumulative[index - 1] if index else 0.0
    low = bounds_s[index - 1] if index else 0.0
    share = (rank - below) / counts[index] if counts[index] > 0 else 1.0
    return float(low + (bounds_s[index] - low) * share)


def _bucket_percentiles(tokens: NDArray[np.int32]) -> dict[float, float]:
    """Percentile -> tokens at the bounds of the buckets; of equal shares the lower bound."""
    below = np.searchsorted(np.sort(tokens), LENGTH_BOUNDS_TOKENS, side="right") / tokens.size
    points = {0.0: 1.0}
    for share, bound in zip(below.tolist(), LENGTH_BOUNDS_TOKENS, strict=True):
        if share == 0.0:
            points[0.0] = float(bound)
        points.setdefault(100.0 * share, float(bound))
    return points


def _nothing() -> Observations:
    none = unknown("nothing was scraped yet")
    return Observations(
        arrival_rate_per_s=none,
        running_requests=none,
        waiting_requests=none,
        kv_cache_utilization=none,
        prompt_tokens=none,
        output_tokens=none,
        prefix_hit_share=none,
        time_to_first_token_s=none,
        inter_token_latency_s=none,
        end_to_end_s=none,
    )


def _reading(value: float | None, reason: str) -> Reading:
    return unknown(reason) if value is None else Reading(value)


def _mean(values: Floats) -> Reading:
    return Reading(float(values.mean())) if values.size else unknown("no replica is scraped")


def _ratio(total: float, count: float) -> Reading:
    return Reading(float(total / count)) if count > 0 else unknown("no request in a minute")
