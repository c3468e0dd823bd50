"""
The llm-d recipe for KEDA: KV cache in use at 0.60 and waiting requests at 30, the larger wins.

Source: llm-d pull request 2051 and the script of workload-variant-autoscaler pull request 1517.
"""

from dataclasses import dataclass

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.baselines.hpa_behavior import (
    HpaBehavior,
    HpaState,
    average_value,
    begin,
    behave,
)
from fleetline.replay.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmdKedaParameters:
    """A ScaledObject with two triggers."""

    kv_threshold: float = 0.60
    """Share of the KV cache per replica. 0..1"""
    waiting_threshold: float = 30.0
    """Waiting requests per replica."""
    behavior: HpaBehavior = HpaBehavior()


def step(
    parameters: LlmdKedaParameters, state: HpaState, seen: Observation
) -> tuple[HpaState, int]:
    """One poll of both triggers and one sync of the HPA behind them."""
    behavior = parameters.behavior
    kv = sum(sample.kv_utilization for sample in seen.samples)
    waiting = float(sum(sample.waiting for sample in seen.samples))
    wanted = max(
        average_value(seen, kv, parameters.kv_threshold, behavior.tolerance),
        average_value(seen, waiting, parameters.waiting_threshold, behavior.tolerance),
    )
    return behave(behavior, state, seen, seen.bounded(wanted))


BASELINE = Baseline(
    name="llmd-keda",
    source="llm-d KEDA recipe: KV cache 0.60, waiting 30, polling 15 s",
    period_s=15.0,
    scrape_s=None,
    default=lambda _: LlmdKedaParameters(),
    tunings=lambda _: tuple(
        LlmdKedaParameters(kv_threshold=kv, waiting_threshold=waiting)
        for kv in (0.04, 0.1, 0.2, 0.35, 0.6)
        for waiting in (2.0, 30.0)
    ),
    begin=begin,
    step=step,
)
