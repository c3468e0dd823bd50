"""
AIBrix's two pod autoscalers, in the form that their documents describe.

    APA: if mean/target leaves 0.9..1.1:  ceil(N mean / target), at most doubled or halved
    KPA: ceil(sum over pods / target) from 180 s, or from 60 s when that is twice as much

Two defects of the code are corrected, so that the baseline is fair: the KPA divides the sum, not
the mean over pods (which would lose N), and the cool-down keeps the highest recommendation of the
scale-down window, not the lowest.

Source: vllm-project/aibrix pkg/controller/podautoscaler/algorithm/{apa,kpa}.go, metrics/client.go.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from fleetline.replay.baselines.baseline import CONCURRENCY_SHARES, Baseline
from fleetline.replay.baselines.window import Window
from fleetline.replay.observation import Observation, ReplicaSample
from fleetline.replay.site import Site


class ApaMetric(StrEnum):
    """Engine metrics that its documents scale on."""

    KV_CACHE = "gpu_cache_usage_perc"
    RUNNING = "num_requests_running"

    def of(self, sample: ReplicaSample) -> float:
        """Read it off one pod."""
        return sample.kv_utilization if self is ApaMetric.KV_CACHE else float(sample.running)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApaParameters:
    """The documented example scales on the KV cache at 0.5."""

    metric: ApaMetric = ApaMetric.KV_CACHE
    target: float = 0.5
    tolerance: float = 0.1
    max_rate: float = 2.0
    """Largest factor up, and divisor down, of one decision."""
    scale_down_window_s: float = 300.0


@dataclass(frozen=True, slots=True)
class ApaState:
    """Recommendations of the scale-down window, oldest first."""

    recommendations: tuple[tuple[float, int], ...] = ()


def apa_step(parameters: ApaParameters, state: ApaState, seen: Observation) -> tuple[ApaState, int]:
    """One decision, every 10 s; an unreadable metric skips it."""
    current = seen.current_replicas
    if not seen.samples:
        return state, current
    values = [parameters.metric.of(sample) for sample in seen.samples]
    wanted = apa_replicas(parameters, current, sum(values) / len(values))
    oldest_s = seen.now_s - parameters.scale_down_window_s
    kept = (*(one for one in state.recommendations if one[0] > oldest_s), (seen.now_s, wanted))
    if wanted < current:
        wanted = min(current, max(count for _, count in kept))
    return ApaState(kept), seen.bounded(wanted)


def apa_replicas(parameters: ApaParameters, current: int, mean: float) -> int:
    """Count that the ratio asks for, before the cool-down."""
    ratio = mean / parameters.target
    if ratio > 1 + parameters.tolerance:
        return min(_ceil(current * ratio), _ceil(current * parameters.max_rate))
    if ratio < 1 - parameters.tolerance:
        return max(_ceil(current * ratio), math.floor(current / parameters.max_rate))
    return current


def apa_tunings(site: Site) -> tuple[ApaParameters, ...]:
    """Targets for both metrics."""
    kv = tuple(ApaParameters(target=target) for target in (0.05, 0.1, 0.2, 0.35))
    running = tuple(
        ApaParameters(metric=ApaMetric.RUNNING, target=max(0.25, share * site.ceiling_concurrency))
        for share in (0.35, 0.5, 0.65, 0.8, 1.0)
    )
    return (*kv, *running)


@dataclass(frozen=True, slots=True, kw_only=True)
class AibrixKpaParameters:
    """Windows and thresholds of its KPA."""

    target: float
    """Requests in flight per replica."""
    stable_window_s: float = 180.0
    panic_window_s: float = 60.0
    panic_threshold: float = 2.0
    max_rate: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AibrixKpaState:
    """Samples, and the floor of a panic."""

    in_flight: Window
    panic_since_s: float | None = None
    panic_replicas: int = 0


def kpa_step(
    parameters: AibrixKpaParameters, state: AibrixKpaState, seen: Observation
) -> tuple[AibrixKpaState, int]:
    """One decision, every 10 s."""
    current = seen.current_replicas
    if seen.in_flight is None:
        return state, current
    window = state.in_flight.with_sample(seen.now_s, float(seen.in_flight))
    stable, panic = window.mean(), window.mean(parameters.panic_window_s)
    state = replace(state, in_flight=window)
    if stable > 0 and panic / stable > parameters.panic_threshold:
        state = replace(state, panic_since_s=seen.now_s)
    elif (
        state.panic_since_s is not None
        and seen.now_s - state.panic_since_s > parameters.stable_window_s
    ):
        state = replace(state, panic_since_s=None, panic_replicas=0)
    if state.panic_since_s is None:
        return state, seen.bounded(_limited(parameters, current, stable))
    floor = max(state.panic_replicas, current, _limited(parameters, current, max(stable, panic)))
    return replace(state, panic_replicas=floor), seen.bounded(floor)


def _limited(parameters: AibrixKpaParameters, current: int, total: float) -> int:
    low = math.floor(current / parameters.max_rate)
    high = math.ceil(current * parameters.max_rate)
    return max(low, min(high, _ceil(total / parameters.target)))


def _ceil(value: float) -> int:
    return math.ceil(value - 1e-9)


APA = Baseline(
    name="aibrix-apa",
    source="AIBrix APA: KV cache 0.5, tolerance 0.1, rates 2, scale-down window 300 s (corrected)",
    period_s=10.0,
    scrape_s=10.0,
    default=lambda _: ApaParameters(),
    tunings=apa_tunings,
    begin=lambda _, __: ApaState(),
    step=apa_step,
)

KPA = Baseline(
    name="aibrix-kpa",
    source="AIBrix KPA: windows 180 s and 60 s, threshold 2 (corrected: sum over pods)",
    period_s=10.0,
    scrape_s=10.0,
    default=lambda site: AibrixKpaParameters(target=max(0.5, 0.8 * site.ceiling_concurrency)),
    tunings=lambda site: tuple(
        AibrixKpaParameters(target=max(0.25, share * site.ceiling_concurrency))
        for share in CONCURRENCY_SHARES
    ),
    begin=lambda parameters, _: AibrixKpaState(in_flight=Window(parameters.stable_window_s)),
    step=kpa_step,
)
