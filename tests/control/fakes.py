"""Fakes of the ports: a cluster in memory, observations as a table, and turns over them."""

from dataclasses import dataclass, field, replace

from fleetline.control.fleet import Fleet, TargetReference
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Pod, Reading, Target, unknown
from fleetline.control.turn import Turn, take_turn
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica

OBJECTIVE = Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, percentile=95, target_s=0.05)
PERIOD_S = 15.0


def a_fleet(**changes) -> Fleet:
    fleet = Fleet(
        namespace="default",
        name="chat",
        uid="1",
        generation=1,
        created_s=0.0,
        target=TargetReference(kind="Deployment", name="chat"),
        objectives=(OBJECTIVE,),
        max_replicas=20,
    )
    return replace(fleet, **changes)


def a_replica() -> Replica:
    """Llama-3.1-8B on one H100."""
    return Replica(
        architecture=Architecture(
            name="llama-3.1-8b",
            layers=32,
            hidden_size=4096,
            parameters=8.03e9,
            active_parameters=8.03e9,
            attention_heads=32,
            head_size=128,
            vocabulary_size=128_256,
            kv_values_per_token=65_536,
            kv_heads=8,
        ),
        accelerator=Accelerator(
            name="H100-SXM",
            vendor="NVIDIA",
            memory_bytes=80e9,
            bandwidth_bytes_per_s=3.35e12,
            bf16_flop_per_s=989e12,
        ),
    )


def pods(count: int, *, now_s: float = 0.0, age_s: float = 1000.0) -> tuple[Pod, ...]:
    return tuple(
        Pod(
            name=f"chat-{index}",
            created_s=now_s - age_s - 60.0,
            ready_since_s=now_s - age_s,
        )
        for index in range(count)
    )


def seen(rate_per_s: float, *, replicas: int = 1, waiting: float = 0.0, **changes) -> Observations:
    nothing = unknown("not observed")
    observations = Observations(
        arrival_rate_per_s=Reading(rate_per_s),
        running_requests=Reading(rate_per_s * 5.0),
        waiting_requests=Reading(waiting),
        kv_cache_utilization=nothing,
        prompt_tokens=Reading(1500.0),
        output_tokens=Reading(250.0),
        prefix_hit_share=nothing,
        time_to_first_token_s=nothing,
        inter_token_latency_s=nothing,
        end_to_end_s=nothing,
        reporting_replicas=replicas,
    )
    return replace(observations, **changes)


@dataclass
class FakeCluster:
    """One target; a write changes the count and, if asked to, the pods at once."""

    target: Target
    written: list[int] = field(default_factory=list)
    start_at_once: bool = True

    async def read_target(self, _: Fleet) -> Target:
        return self.target

    async def write_replicas(self, _: Fleet, target: Target, replicas: int) -> None:
        assert target.resource_version == self.target.resource_version
        self.written.append(replicas)
        running = pods(replicas) if self.start_at_once else self.target.pods
        self.target = replace(
            self.target,
            replicas=replicas,
            pods=running,
            resource_version=str(int(target.resource_version) + 1),
        )


def a_target(replicas: int = 1, **changes) -> Target:
    target = Target(
        replicas=replicas, resource_version="1", pods=pods(replicas), replica=a_replica()
    )
    return replace(target, **changes)


async def turns(
    fleet: Fleet,
    cluster: FakeCluster,
    views: list[Observations | str],
    *,
    memory: Memory | None = None,
    start_s: float = 0.0,
) -> list[Turn]:
    """Take one turn for each view, a period apart."""
    taken: list[Turn] = []
    memory = memory or Memory()
    for index, view in enumerate(views):
        now_s = start_s + index * PERIOD_S
        turn = await take_turn(fleet, memory, cluster, view, now_s=now_s, period_s=PERIOD_S)
        memory = turn.memory
        taken.append(turn)
    return taken
