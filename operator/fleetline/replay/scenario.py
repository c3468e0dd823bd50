"""One question put to every policy: this trace, on this fleet, under these objectives."""

from dataclasses import dataclass, field

import numpy as np

from fleetline.errors import ManifestError, ModelError
from fleetline.model import ceiling as ceilings
from fleetline.model.ceiling import Ceiling
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.objective import Objective
from fleetline.model.replica import Replica
from fleetline.model.roofline import step_time
from fleetline.model.workload import TokenLengths, Workload
from fleetline.policy.behavior import Behavior
from fleetline.policy.sizing import replicas_for_rate
from fleetline.replay.site import Site
from fleetline.replay.traces import Trace
from sim_cluster.serving.fleet import FleetSimulation, Router
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.startup import StartupTime

SAMPLED_REQUESTS = 4000
"""Requests of a trace whose lengths the ceiling is computed from."""

MINUTE_S = 60.0
LEAST_MAX_REPLICAS = 4
FIRST_STRETCH_S = 600.0
"""The fleet begins with what the largest minute of this stretch needs. [s]"""

FIRST_MARGIN = 1.5
"""And with half more: a fleet that was served well until now."""

MOST_REPLICAS = 4096
"""What such a fleet cannot meet, none can: it shares every burst."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """Everything but the policy."""

    trace: Trace
    replica: Replica
    objectives: tuple[Objective, ...]
    startup: StartupTime
    startup_s: float
    """Mean of the distribution: what a clairvoyant knows. [s]"""
    period_s: float = 15.0
    """How often our own policy decides. [s]"""
    scrape_s: float = 15.0
    """How often Prometheus scrapes. [s]"""
    dispersion: float = 1.0
    min_replicas: int = 1
    max_replicas: int = 200
    initial_replicas: int
    router: Router = Router.LEAST_LOADED
    seed: int = 0
    price_usd_per_hour: float | None = None
    """Of one accelerator. [USD/h]"""
    queue_drain_s: float = 60.0
    behavior: Behavior = field(default_factory=Behavior)
    """How fast our own policy may change the count."""

    @property
    def lengths(self) -> TokenLengths:
        """Lengths of the trace's requests, thinned evenly."""
        return lengths_of(self.trace)

    @property
    def limits(self) -> EngineLimits:
        """Limits of one engine."""
        return EngineLimits(
            max_sequences=self.replica.max_sequences,
            step_token_budget=max(self.replica.step_token_budget, self.replica.max_sequences),
            kv_capacity_tokens=kv_capacity_tokens(self.replica),
        )

    def fleet(self) -> FleetSimulation:
        """Build the fleet as it stands at the beginning of the trace."""
        return FleetSimulation(
            self.trace.arrivals,
            step_time(self.replica),
            self.limits,
            router=self.router,
            startup=self.startup,
            initial_replicas=self.initial_replicas,
            seed=self.seed,
        )


def lengths_of(trace: Trace) -> TokenLengths:
    """Return the length distribution of a trace, thinned evenly."""
    arrivals = trace.arrivals
    index = np.linspace(0, len(arrivals) - 1, min(len(arrivals), SAMPLED_REQUESTS)).astype(np.intp)
    return TokenLengths.of(
        arrivals.prompt_tokens[index].astype(np.float64),
        arrivals.output_tokens[index].astype(np.float64),
        cached_prompt_tokens=arrivals.cached_prompt_tokens[index].astype(np.float64),
    )


def pooled_rate_per_s(scenario: Scenario, replicas: int) -> float:
    """Ceiling of one replica when so many share the load. [1/s]"""
    workload = Workload(lengths=scenario.lengths, dispersion=scenario.dispersion)
    return ceilings.ceiling(
        scenario.replica, workload, scenario.objectives, replicas=replicas
    ).rate_per_s


def site_of(scenario: Scenario) -> Site:
    """
    Describe the fleet to the peers.

    Raises
    ------
    ModelError
        If an objective cannot be met at any rate.
    """
    lengths = scenario.lengths
    workload = Workload(lengths=lengths, dispersion=scenario.dispersion)
    alone = _smallest_fleet(scenario.replica, workload, scenario.objectives)
    return Site(
        replica=scenario.replica,
        step_time=step_time(scenario.replica),
        kv_capacity_tokens=kv_capacity_tokens(scenario.replica),
        objectives=scenario.objectives,
        prompt_tokens=lengths.mean_prompt_tokens,
        output_tokens=lengths.mean_output_tokens,
        ceiling_rate_per_s=alone.rate_per_s,
        ceiling_concurrency=alone.concurrency,
        peak_rate_per_s=float(scenario.trace.rate_per_s(MINUTE_S).max()),
        min_replicas=scenario.min_replicas,
        max_replicas=scenario.max_replicas,
    )


def default_max_replicas(
    trace: Trace, replica: Replica, objectives: tuple[Objective, ...], *, dispersion: float
) -> int:
    """Return twice what the largest minute needs, at least `LEAST_MAX_REPLICAS`."""
    peak = float(trace.rate_per_s(MINUTE_S).max())
    needed = _replicas_for(peak, trace, replica, objectives, dispersion=dispersion)
    return max(LEAST_MAX_REPLICAS, 2 * needed)


def first_replicas(
    trace: Trace,
    replica: Replica,
    objectives: tuple[Objective, ...],
    *,
    dispersion: float,
    max_replicas: int,
) -> int:
    """Replicas that half more than the largest minute of the beginning needs."""
    first = float(trace.rate_per_s(MINUTE_S)[: int(FIRST_STRETCH_S // MINUTE_S)].max())
    needed = _replicas_for(FIRST_MARGIN * first, trace, replica, objectives, dispersion=dispersion)
    return max(1, min(max_replicas, needed))


def _replicas_for(
    rate_per_s: float,
    trace: Trace,
    replica: Replica,
    objectives: tuple[Objective, ...],
    *,
    dispersion: float,
) -> int:
    """Smallest fleet that carries a rate; ModelError if no fleet meets the objectives."""
    if replica.lanes != 1:
        raise ManifestError(
            "data_parallel and pipeline_parallel must be 1 in a replay, "
            f"got {replica.data_parallel} and {replica.pipeline_parallel}"
        )
    workload = Workload(lengths=lengths_of(trace), dispersion=dispersion)
    _smallest_fleet(replica, workload, objectives)
    return replicas_for_rate(
        rate_per_s,
        lambda replicas: ceilings.ceiling(replica, workload, objectives, replicas=replicas),
    )


def _smallest_fleet(
    replica: Replica, workload: Workload, objectives: tuple[Objective, ...]
) -> Ceiling:
    """Ceiling of a replica alone, or among the fewest that share bursts well enough."""
    replicas = 1
    while True:
        found = ceilings.ceiling(replica, workload, objectives, replicas=replicas)
        if found.is_attainable:
            return found
        if replicas >= MOST_REPLICAS:
            raise ModelError(found.because)
        replicas *= 2
