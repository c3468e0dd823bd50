"""What whoever sets up a policy may know beforehand: the replica, its objectives, its ceiling."""

from dataclasses import dataclass

from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.step_time import StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One fleet before its first request; peers get all of it, so that defaults flatter them."""

    replica: Replica
    step_time: StepTime
    kv_capacity_tokens: float
    objectives: tuple[Objective, ...]
    prompt_tokens: float
    """Mean of the trace. [tokens]"""
    output_tokens: float
    """Mean of the trace. [tokens]"""
    ceiling_rate_per_s: float
    """Largest rate of one replica alone at which the objectives hold. [1/s]"""
    ceiling_concurrency: float
    """Requests in one replica at that rate."""
    peak_rate_per_s: float
    """Largest rate of any minute of the trace: what static sizing has to know. [1/s]"""
    min_replicas: int = 1
    max_replicas: int = 1000

    def target_s(self, metric: Metric) -> float | None:
        """Tightest target of a metric; None if no objective bounds it. [s]"""
        return min((one.target_s for one in self.objectives if one.metric is metric), default=None)
