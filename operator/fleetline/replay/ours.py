"""
Our own policy in a replay: the very turn that the operator takes, over ports in virtual time.

Nothing of the policy is here: `take_turn` observes, learns, decides and writes as in a cluster.
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fleetline.control.fleet import Fleet, TargetReference
from fleetline.control.memory import Memory
from fleetline.control.turn import take_turn
from fleetline.replay.scenario import Scenario
from fleetline.replay.scrape import Scraper
from fleetline.replay.virtual_ports import EPOCH_S, VirtualCluster, VirtualMetrics
from sim_cluster.serving.fleet import FleetSimulation

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OurParameters:
    """Nothing to tune: what the policy needs it measures. This is what it was given."""

    period_s: float = 15.0
    queue_drain_s: float = 60.0


class FleetlinePilot:
    """Takes a turn of the operator at every decision."""

    def __init__(self, scenario: Scenario, parameters: OurParameters) -> None:
        self.period_s = parameters.period_s
        self.scrape_s = scenario.scrape_s
        self._scenario = scenario
        self._memory = Memory()
        self._ports: tuple[VirtualCluster, VirtualMetrics] | None = None
        self._fleet = Fleet(
            namespace="replay",
            name="fleet",
            uid="replay",
            generation=1,
            created_s=EPOCH_S,
            target=TargetReference(kind="Deployment", name="fleet"),
            objectives=scenario.objectives,
            min_replicas=scenario.min_replicas,
            max_replicas=scenario.max_replicas,
            queue_drain_s=parameters.queue_drain_s,
            behavior=scenario.behavior,
        )

    def decide(self, fleet: FleetSimulation, scraper: Scraper) -> int:
        """Take one turn; it writes through its own port."""
        if self._ports is None:
            self._ports = (
                VirtualCluster(fleet, self._scenario.replica, self._scenario.startup_s),
                VirtualMetrics(scraper, self._scenario.trace.arrivals),
            )
        cluster, metrics = self._ports
        metrics.now_s = fleet.now_s
        seen = finish(metrics.observe([self._fleet]))[self._fleet.key]
        turn = finish(
            take_turn(
                self._fleet,
                self._memory,
                cluster,
                seen,
                now_s=EPOCH_S + fleet.now_s,
                period_s=self.period_s,
            )
        )
        self._memory = turn.memory
        return fleet.asked_replicas


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose ports never wait: in virtual time everything answers at once."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a port in virtual time must answer at once, it waited")
