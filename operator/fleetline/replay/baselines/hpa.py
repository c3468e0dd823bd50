"""
The HorizontalPodAutoscaler on a serving metric averaged over pods.

    desired = ceil(ready x mean / target), unless |mean / target - 1| <= 0.1

Three metrics that guides recommend: requests in flight, requests waiting, KV cache in use.
"""

from dataclasses import dataclass
from enum import StrEnum

from fleetline.replay.baselines.baseline import CONCURRENCY_SHARES, Baseline
from fleetline.replay.baselines.hpa_behavior import (
    HpaBehavior,
    HpaState,
    begin,
    behave,
    pods_metric,
)
from fleetline.replay.observation import Observation, ReplicaSample
from fleetline.replay.site import Site

SYNC_PERIOD_S = 15.0
"""kube-controller-manager `--horizontal-pod-autoscaler-sync-period`. [s]"""

SAFE_SHARE = 0.8
"""Share of the concurrency at the ceiling where a guide would tell users to begin."""

WAITING_TARGET = 5.0
"""GKE's guide and vLLM production-stack's ScaledObject begin at 3 to 5. [requests]"""

KV_TARGET = 0.6
"""The llm-d recipe's share of the KV cache."""


class Signal(StrEnum):
    """What is averaged over pods."""

    IN_FLIGHT = "in-flight"
    WAITING = "waiting"
    KV_UTILIZATION = "kv"

    def of(self, sample: ReplicaSample) -> float:
        """Read it off one pod."""
        if self is Signal.IN_FLIGHT:
            return float(sample.in_flight)
        return float(sample.waiting) if self is Signal.WAITING else sample.kv_utilization


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaParameters:
    """A metric, its target, and the behaviour."""

    signal: Signal
    target: float
    behavior: HpaBehavior = HpaBehavior()


def step(parameters: HpaParameters, state: HpaState, seen: Observation) -> tuple[HpaState, int]:
    """One sync of the controller; without any sample it leaves the count alone."""
    values = tuple(parameters.signal.of(sample) for sample in seen.samples)
    if not values:
        return state, seen.current_replicas
    wanted = pods_metric(seen, values, parameters.target, parameters.behavior.tolerance)
    return behave(parameters.behavior, state, seen, seen.bounded(wanted))


def _in_flight(site: Site) -> HpaParameters:
    return HpaParameters(
        signal=Signal.IN_FLIGHT, target=max(0.5, SAFE_SHARE * site.ceiling_concurrency)
    )


def _in_flight_tunings(site: Site) -> tuple[HpaParameters, ...]:
    return tuple(
        HpaParameters(signal=Signal.IN_FLIGHT, target=max(0.25, share * site.ceiling_concurrency))
        for share in CONCURRENCY_SHARES
    )


IN_FLIGHT = Baseline(
    name="hpa-inflight",
    source="kubernetes pkg/controller/podautoscaler; target: 0.8 of the concurrency at the ceiling",
    period_s=SYNC_PERIOD_S,
    scrape_s=None,
    default=_in_flight,
    tunings=_in_flight_tunings,
    begin=begin,
    step=step,
)

WAITING = Baseline(
    name="hpa-waiting",
    source="kubernetes pkg/controller/podautoscaler; target: GKE's guide for queue size, 5",
    period_s=SYNC_PERIOD_S,
    scrape_s=None,
    default=lambda _: HpaParameters(signal=Signal.WAITING, target=WAITING_TARGET),
    tunings=lambda _: tuple(
        HpaParameters(signal=Signal.WAITING, target=target)
        for target in (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    ),
    begin=begin,
    step=step,
)

KV_CACHE = Baseline(
    name="hpa-kv",
    source="kubernetes pkg/controller/podautoscaler; target: llm-d recipe, 0.6 of the KV cache",
    period_s=SYNC_PERIOD_S,
    scrape_s=None,
    default=lambda _: HpaParameters(signal=Signal.KV_UTILIZATION, target=KV_TARGET),
    tunings=lambda _: tuple(
        HpaParameters(signal=Signal.KV_UTILIZATION, target=target)
        for target in (0.04, 0.08, 0.15, 0.25, 0.35, 0.5, 0.6, 0.75)
    ),
    begin=begin,
    step=step,
)
