"""What a policy may look at: the fleet as its own source of metrics shows it, late and in part."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSample:
    """The last scrape of one ready replica."""

    running: int
    waiting: int
    kv_utilization: float
    """Share of the KV cache in use. 0..1"""
    queued_tokens: float = 0.0
    """Prompt tokens waiting in front of it; only Dynamo's planner sees them. [tokens]"""
    waiting_peak: int | None = None
    """Largest number waiting at any scrape of the last minute; None: as now."""
    kv_peak: float | None = None
    """Largest share of the KV cache at any scrape of the last minute; None: as now. 0..1"""

    @property
    def in_flight(self) -> int:
        """Requests that it has: running and waiting."""
        return self.running + self.waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the fleet."""

    now_s: float
    current_replicas: int
    """What the scale subresource asks for."""
    ready_replicas: int
    samples: tuple[ReplicaSample, ...]
    """Ready replicas that have been scraped; a young one may still be missing."""
    arrival_rate_per_s: float | None = None
    """Requests offered per second over the rate window; None until two scrapes. [1/s]"""
    prompt_tokens: float | None = None
    """Mean prompt length of recent requests. [tokens]"""
    output_tokens: float | None = None
    """Mean answer length of recent requests. [tokens]"""
    prefix_hit_share: float = 0.0
    """Share of prompt tokens found in the prefix cache; only Dynamo's planner asks. 0..1"""
    min_replicas: int = 1
    max_replicas: int = 1000

    @property
    def in_flight(self) -> int | None:
        """Requests in all sampled replicas; None if none is sampled."""
        if not self.samples:
            return None
        return sum(sample.in_flight for sample in self.samples)

    @property
    def starting_replicas(self) -> int:
        """Replicas asked for that do not serve yet."""
        return max(0, self.current_replicas - self.ready_replicas)

    def bounded(self, replicas: int) -> int:
        """Clamp a count into the fleet's bounds."""
        return max(self.min_replicas, min(self.max_replicas, replicas))
