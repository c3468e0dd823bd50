"""
A fleet in virtual time: ask for replicas, let time pass, look, ask again.

    fleet = FleetSimulation(arrivals, step_time, limits, startup=StartupTime.fixed(120.0))
    while fleet.now_s < end_s:
        fleet.advance(fleet.now_s + 15.0)
        seen = fleet.snapshot()                 # what /metrics of every replica shows now
        fleet.scale(decide(seen))               # starts replicas, or drains some
    results, lives = fleet.results(), fleet.lives

Time starts at zero. `advance` runs the compiled loop up to and including a moment; results do
not depend on how often it is called. `scale` takes effect at the moment reached: new replicas
take a start-up time drawn from the distribution, surplus ones finish what they have. Requests
that find no ready replica wait at the router. The same seed gives the same results anywhere.
"""

from enum import IntEnum

import numpy as np

from fleetline.errors import ModelError
from fleetline.model.step_time import StepTime
from sim_cluster.serving import arrays, viewing
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.deployment import REPLACEMENT_DELAY_S, Deployment, Loss
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.lives import Inventory, ReplicaLife, Surge, Victims
from sim_cluster.serving.results import RequestResults
from sim_cluster.serving.snapshot import Snapshot
from sim_cluster.serving.startup import StartupTime
from sim_cluster.serving.viewing import PhaseAreas

__all__ = ["FleetSimulation", "Inventory", "Loss", "Router", "Surge", "Victims"]


class Router(IntEnum):
    """How the router chooses a replica."""

    ROUND_ROBIN = 0
    LEAST_LOADED = 1
    """Fewest requests in flight; ties go round."""
    POWER_OF_TWO = 2
    """The less loaded of two drawn at random."""


class FleetSimulation:
    """
    Replicas of one model behind one router, in virtual time.

    Parameters
    ----------
    arrivals
        Requests, in order of arrival, from t = 0 on.
    step_time, limits
        One replica: coefficients of its steps, and the limits of its engine.
    router
        How requests are spread.
    startup
        Distribution of the time from creation to readiness.
    initial_replicas
        Replicas that are ready at t = 0.
    inventory
        Accelerators of the cluster; without one every replica finds a place.
    victims
        Which ready replicas a scale-down takes.
    loss
        What becomes of the requests of a replica that dies.
    surge
        Limits of a rolling update.
    seed
        Of start-up times and of the router.
    """

    def __init__(
        self,
        arrivals: Arrivals,
        step_time: StepTime,
        limits: EngineLimits,
        *,
        router: Router = Router.LEAST_LOADED,
        startup: StartupTime | None = None,
        initial_replicas: int = 1,
        inventory: Inventory | None = None,
        victims: Victims = Victims.NEWEST,
        loss: Loss = Loss.RETRIED,
        surge: Surge | None = None,
        seed: int = 0,
    ) -> None:
        if len(arrivals) and arrivals.t_s[0] < 0:
            raise ModelError(f"arrivals.t_s must be >= 0, got {arrivals.t_s[0]:g}")
        self._arrivals = arrivals
        self._limits = limits
        self._deployment = Deployment(
            arrays.new_state(arrivals, step_time, limits, policy=int(router), seed=seed),
            startup=startup or StartupTime.fixed(0.0),
            random=np.random.Generator(np.random.PCG64(seed)),
            inventory=inventory,
            victims=victims,
            loss=loss,
            surge=surge or Surge(),
        )
        self._deployment.begin_with(initial_replicas)

    @property
    def now_s(self) -> float:
        """The moment reached. [s]"""
        return self._deployment.now_s

    @property
    def asked_replicas(self) -> int:
        """What `scale` last asked for."""
        return self._deployment.asked

    @property
    def ready_replicas(self) -> int:
        """Replicas that take requests now."""
        living = self._deployment.living
        return sum(life.slot is not None for life in living if life.is_alive and not life.is_lost)

    @property
    def lives(self) -> tuple[ReplicaLife, ...]:
        """Every replica that was ever asked for, in order of their numbers."""
        return tuple(self._deployment.lives)

    @property
    def is_done(self) -> bool:
        """Whether every request has arrived and none is left anywhere."""
        state = self._deployment.state
        come = int(state.router["next_arrival"][0]) >= len(self._arrivals)
        return come and not state.loads.any() and not int(state.router["held"][0])

    def advance(self, to_s: float) -> None:
        """
        Let time pass up to and including a moment; infinity: until nothing is left to do.

        Raises
        ------
        ModelError
            If the moment lies in the past.
        """
        if not to_s >= self.now_s:
            raise ModelError(f"to_s must be >= the clock ({self.now_s:g} s), got {to_s:g}")
        self._deployment.run(to_s)

    def scale(self, replicas: int) -> None:
        """Ask for a number of replicas, as a write to the scale subresource does."""
        if replicas < 0:
            raise ModelError(f"replicas must be >= 0, got {replicas}")
        self._deployment.asked = replicas
        self._deployment.reconcile()

    def roll_out(self) -> None:
        """Begin a rolling update: every replica is replaced by one of a new revision."""
        self._deployment.revision += 1
        self._deployment.reconcile()

    def crash(self, number: int) -> None:
        """
        Let a serving replica die; it restarts in place and loses the requests it had.

        Raises
        ------
        ModelError
            If no replica of that number serves now.
        """
        self._deployment.crash(number)

    def lose_node(self, node: int, *, replacement_delay_s: float = REPLACEMENT_DELAY_S) -> None:
        """Lose a node and its replicas; replacements are asked for after the delay."""
        self._deployment.lose_node(node, replacement_delay_s)

    def restore_node(self, node: int) -> None:
        """Give a lost node back."""
        self._deployment.restore_node(node)

    def snapshot(self) -> Snapshot:
        """Read what every engine shows at this moment, in time proportional to the replicas."""
        return viewing.look(
            self._deployment.state,
            self._deployment.living,
            self._limits,
            now_s=self.now_s,
            asked_replicas=self.asked_replicas,
        )

    def results(self) -> RequestResults:
        """Read what happened to each request so far."""
        return RequestResults.of(self._deployment.state.requests, self._arrivals)

    def phase_areas(self) -> PhaseAreas:
        """Integrals over time of the requests in each phase of life, over the whole fleet."""
        deployment = self._deployment
        return deployment.past_areas + viewing.phase_areas(
            deployment.state, deployment.living, now_s=self.now_s
        )
