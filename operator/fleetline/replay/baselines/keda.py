"""
KEDA's Prometheus scaler on waiting requests, as vLLM production-stack ships it.

    desired = ceil(total / threshold) through an HPA; an empty answer counts as zero

Sources: kedacore/keda pkg/scalers/prometheus_scaler.go (`ignoreNullValues`, default true);
vllm-project/production-stack helm/templates/scaledobject-vllm.yaml (threshold 5, polling 15 s).
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
class KedaParameters:
    """A ScaledObject with one trigger; never to zero, since the fleet's minimum is at least 1."""

    threshold: float = 5.0
    """Waiting requests per replica."""
    behavior: HpaBehavior = HpaBehavior()


def step(parameters: KedaParameters, state: HpaState, seen: Observation) -> tuple[HpaState, int]:
    """One poll and one sync of the HPA behind it."""
    total = float(sum(sample.waiting for sample in seen.samples))
    behavior = parameters.behavior
    wanted = average_value(seen, total, parameters.threshold, behavior.tolerance)
    return behave(behavior, state, seen, seen.bounded(wanted))


BASELINE = Baseline(
    name="keda",
    source="vllm production-stack ScaledObject: waiting 5, polling 15 s; KEDA null -> 0",
    period_s=15.0,
    scrape_s=None,
    default=lambda _: KedaParameters(),
    tunings=lambda _: tuple(
        KedaParameters(threshold=value) for value in (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    ),
    begin=begin,
    step=step,
)
