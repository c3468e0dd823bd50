"""Who steers the fleet in a run: a baseline with its state, or a schedule made beforehand."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.scenario import Scenario
from fleetline.replay.scrape import Bounds, Scraper, observe
from sim_cluster.serving.fleet import FleetSimulation

OWN_METRICS_S = 10.0
"""A metrics path that samples more often than this has no functions over time. [s]"""


class Pilot(Protocol):
    """Looks at its scrapes now and then, and asks for replicas."""

    @property
    def period_s(self) -> float:
        """Time between decisions. [s]"""
        ...

    @property
    def scrape_s(self) -> float:
        """Time between scrapes. [s]"""
        ...

    def decide(self, fleet: FleetSimulation, scraper: Scraper) -> int:
        """Return the replicas to ask for now."""
        ...


class BaselinePilot:
    """Drives a published algorithm."""

    def __init__(self, baseline: Baseline[Any, Any], parameters: Any, scenario: Scenario) -> None:
        self.period_s = baseline.period_s
        self.scrape_s = scenario.scrape_s if baseline.scrape_s is None else baseline.scrape_s
        self._step = baseline.step
        self._parameters = parameters
        self._state = baseline.begin(parameters, scenario.initial_replicas)
        self._bounds = Bounds(
            min_replicas=scenario.min_replicas, max_replicas=scenario.max_replicas
        )

    def decide(self, fleet: FleetSimulation, scraper: Scraper) -> int:
        """Take one step of the algorithm."""
        seen = observe(
            scraper,
            now_s=fleet.now_s,
            asked=fleet.asked_replicas,
            ready=fleet.ready_replicas,
            bounds=self._bounds,
            has_peaks=self.scrape_s >= OWN_METRICS_S,
        )
        self._state, desired = self._step(self._parameters, self._state, seen)
        return desired


class SchedulePilot:
    """Follows a plan: what to ask for in each period."""

    def __init__(self, counts: NDArray[np.int64], period_s: float) -> None:
        self.period_s = period_s
        self.scrape_s = float("inf")
        self._counts = counts

    def decide(self, fleet: FleetSimulation, _: Scraper) -> int:
        """Read the plan."""
        index = round(fleet.now_s / self.period_s)
        return int(self._counts[min(index, self._counts.size - 1)])
