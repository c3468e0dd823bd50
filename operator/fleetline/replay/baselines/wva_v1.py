"""
WVA saturation, version 1: one replica more or less by spare KV cache and spare queue.

A replica is saturated at KV 0.80 or 5 waiting. Over the others: one more if the mean spare KV is
below 0.10 or the mean spare queue below 3; one fewer if both spares stay above these after their
load moved to one replica less. Nothing moves while a replica is starting.

Source: workload-variant-autoscaler internal/saturationv1, docs saturation-scaling-config.md.
"""

from dataclasses import dataclass

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.baselines.hpa_behavior import HpaBehavior
from fleetline.replay.baselines.wva_chain import OPTIMIZER_PERIOD_S, ChainState, act, begin
from fleetline.replay.observation import Observation, ReplicaSample


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaV1Parameters:
    """Thresholds of the ConfigMap, published defaults."""

    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    """Waiting requests."""
    kv_spare_trigger: float = 0.10
    queue_spare_trigger: float = 3.0
    """Waiting requests."""
    behavior: HpaBehavior = HpaBehavior()


def step(
    parameters: WvaV1Parameters, state: ChainState, seen: Observation
) -> tuple[ChainState, int]:
    """One optimization and one sync of the HPA behind it."""
    return act(parameters.behavior, state, seen, recommend(parameters, seen))


def recommend(parameters: WvaV1Parameters, seen: Observation) -> int:
    """Count that saturation asks for: at most one replica away."""
    current = seen.current_replicas
    if seen.starting_replicas or seen.ready_replicas > current or not seen.samples:
        return current
    loads = [(_kv(one), _queue(one)) for one in seen.samples]
    free = [
        (kv, queue)
        for kv, queue in loads
        if kv < parameters.kv_threshold and queue < parameters.queue_threshold
    ]
    if not free or _is_short(parameters, free, 1.0):
        return seen.bounded(current + 1)
    count = len(free)
    if count >= 2 and not _is_short(parameters, free, count / (count - 1)):
        return seen.bounded(current - 1)
    return current


def _is_short(parameters: WvaV1Parameters, free: list[tuple[float, float]], growth: float) -> bool:
    count = len(free)
    spare_kv = sum(parameters.kv_threshold - growth * kv for kv, _ in free) / count
    spare_queue = sum(parameters.queue_threshold - growth * queue for _, queue in free) / count
    return spare_kv < parameters.kv_spare_trigger or spare_queue < parameters.queue_spare_trigger


def _kv(sample: ReplicaSample) -> float:
    return sample.kv_utilization if sample.kv_peak is None else sample.kv_peak


def _queue(sample: ReplicaSample) -> float:
    return float(sample.waiting if sample.waiting_peak is None else sample.waiting_peak)


BASELINE = Baseline(
    name="wva-v1",
    source="WVA saturation v1: KV 0.80, queue 5, spare 0.10 and 3; HPA behind it",
    period_s=OPTIMIZER_PERIOD_S,
    scrape_s=None,
    default=lambda _: WvaV1Parameters(),
    tunings=lambda _: tuple(
        WvaV1Parameters(kv_threshold=kv, kv_spare_trigger=kv / 8)
        for kv in (0.05, 0.1, 0.2, 0.35, 0.5, 0.8)
    ),
    begin=begin,
    step=step,
)
