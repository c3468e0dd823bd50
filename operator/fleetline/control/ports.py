"""
What the loop needs from the world, said small: targets, observations and the write of a count.

The operator implements these with Kubernetes and Prometheus, the replay with a simulated fleet
in virtual time, the tests with fakes. Every observation is a value, a known zero, or unknown with
a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fleetline.control.fleet import Fleet
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured quantity: a finite value >= 0, or unknown with a reason."""

    value: float | None
    unknown_because: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is a value; a known zero is one."""
        return self.value is not None


def unknown(reason: str) -> Reading:
    """Return a reading that could not be had."""
    return Reading(None, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the target, as far as sizing cares."""

    name: str
    created_s: float
    ready_since_s: float | None = None
    """When it became ready; None if it is not. Unix time. [s]"""
    is_terminating: bool = False
    is_scheduled: bool = True
    unschedulable_because: str = ""
    restarts: int = 0
    is_failed: bool = False
    """Failed, evicted or crash-looping: neither capacity nor a start."""
    accelerator_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The scaled object at one moment."""

    replicas: int
    """`spec.replicas` of the scale subresource."""
    resource_version: str
    """Sent back with the write, so that a concurrent change makes it fail."""
    uid: str = ""
    """Identity of the object: another one of the same name has another history."""
    pods: tuple[Pod, ...] = ()
    replica: Replica | None = None
    """What one replica is made of; None if the accelerator or the model is not known."""
    replica_unknown_because: str = ""
    is_rolling_out: bool = False
    creation_failure: str = ""
    """Why pods cannot be created (a quota, an admission webhook), or empty."""
    conflicts_with: str = ""
    """Another autoscaler or an older fleet that owns this target, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What Prometheus showed about one fleet, summed over its pods unless said otherwise."""

    arrival_rate_per_s: Reading
    """Requests offered per second. [1/s]"""
    running_requests: Reading
    waiting_requests: Reading
    """Queued in engines and gateways. [requests]"""
    kv_cache_utilization: Reading
    """Mean over replicas. 0..1"""
    prompt_tokens: Reading
    """Mean prompt length of recent requests. [tokens]"""
    output_tokens: Reading
    """Mean output length of recent requests. [tokens]"""
    prefix_hit_share: Reading
    """Share of prompt tokens found in the prefix cache. 0..1"""
    time_to_first_token_s: Reading
    """Mean. [s]"""
    inter_token_latency_s: Reading
    """Mean. [s]"""
    end_to_end_s: Reading
    """Mean. [s]"""
    latency_percentiles_s: Mapping[str, Reading] = field(default_factory=dict)
    """For each objective, by `str(objective)`, the measured percentile. [s]"""
    preemption_rate_per_s: Reading = unknown("not observed")
    sample_age_s: Reading = unknown("not observed")
    reporting_replicas: int = 0
    """Pods whose series were seen."""
    frozen_replicas: int = 0
    """Pods whose metrics stand still although they are busy, or are old: these are not read."""
    is_partial: bool = False
    """Prometheus said that the answer lacks data: increases only."""
    clock_skew_s: float | None = None
    """Prometheus' clock less ours; None if it does not tell. [s]"""
    lengths: TokenLengths | None = None
    """Length distribution, if histograms show it."""


class Cluster(Protocol):
    """Kubernetes, as far as one turn needs it."""

    async def read_target(self, fleet: Fleet) -> Target:
        """Read the scaled object and its pods; ObservationError if it cannot be read."""
        ...

    async def write_replicas(self, fleet: Fleet, target: Target, replicas: int) -> None:
        """Patch the scale subresource at the resource version of `target`."""
        ...


class Metrics(Protocol):
    """Prometheus, as far as one turn needs it: a few queries answer for all fleets."""

    async def observe(self, fleets: Sequence[Fleet]) -> Mapping[str, Observations]:
        """Observations by `Fleet.key`; ObservationError if Prometheus as a whole is unreachable."""
        ...
