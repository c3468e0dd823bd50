"""
Knative's pod autoscaler (KPA) on concurrency.

    stable = ceil(mean of 60 s / target)      panic = ceil(mean of 6 s / target)

Panic begins when the panic count is at least twice the ready replicas; while it lasts the count
never falls, and it ends 60 s after the last time the threshold was passed. A controller that
starts with more than one pod starts in panic.

Source: knative/serving pkg/autoscaler/scaling/autoscaler.go and configmaps/autoscaler.yaml.
"""

import math
from dataclasses import dataclass, replace

from fleetline.replay.baselines.baseline import CONCURRENCY_SHARES, Baseline
from fleetline.replay.baselines.window import Window
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class KpaParameters:
    """`config-autoscaler`, published defaults."""

    target: float = 70.0
    """Concurrency per replica: 100, of which 70 % are used. [requests]"""
    stable_window_s: float = 60.0
    panic_window_s: float = 6.0
    panic_threshold: float = 2.0
    """Panic count over ready replicas from which on it panics."""
    max_scale_up: float = 1000.0
    """Largest factor per decision."""
    max_scale_down: float = 2.0
    """Largest divisor per decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KpaState:
    """Samples, and the panic if there is one."""

    in_flight: Window
    panic_since_s: float | None = None
    """When the threshold was last passed; None outside a panic. [s]"""
    panic_replicas: int = 0
    starts_in_panic: bool = False


def begin(parameters: KpaParameters, replicas: int) -> KpaState:
    """State after a start; with more than one pod it is a panic, so that nothing falls at once."""
    return KpaState(
        in_flight=Window(parameters.stable_window_s),
        panic_replicas=replicas if replicas > 1 else 0,
        starts_in_panic=replicas > 1,
    )


def step(parameters: KpaParameters, state: KpaState, seen: Observation) -> tuple[KpaState, int]:
    """One tick of 2 s; without data there is no decision."""
    if state.starts_in_panic:
        state = replace(state, starts_in_panic=False, panic_since_s=seen.now_s)
    if seen.in_flight is None:
        return state, seen.current_replicas
    window = state.in_flight.with_sample(seen.now_s, float(seen.in_flight))
    ready = max(1, seen.ready_replicas)
    low = math.floor(ready / parameters.max_scale_down)
    high = math.ceil(ready * parameters.max_scale_up)
    panic_raw = math.ceil(window.mean(parameters.panic_window_s) / parameters.target)
    stable = _clamp(math.ceil(window.mean() / parameters.target), low, high)
    panic = _clamp(panic_raw, low, high)
    state = _panicking(parameters, replace(state, in_flight=window), seen, panic_raw / ready)
    if state.panic_since_s is None:
        return state, seen.bounded(stable)
    wanted = max(stable, panic)
    state = replace(state, panic_replicas=max(wanted, state.panic_replicas))
    return state, seen.bounded(state.panic_replicas)


def _panicking(
    parameters: KpaParameters, state: KpaState, seen: Observation, ratio: float
) -> KpaState:
    if ratio >= parameters.panic_threshold:
        held = state.panic_replicas if state.panic_since_s is not None else 0
        return replace(state, panic_since_s=seen.now_s, panic_replicas=held)
    since_s = state.panic_since_s
    if since_s is not None and since_s + parameters.stable_window_s < seen.now_s:
        return replace(state, panic_since_s=None, panic_replicas=0)
    return state


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def tunings(site: Site) -> tuple[KpaParameters, ...]:
    """Targets around the concurrency at the ceiling."""
    return tuple(
        KpaParameters(target=max(0.25, share * site.ceiling_concurrency))
        for share in CONCURRENCY_SHARES
    )


BASELINE = Baseline(
    name="kpa",
    source="knative/serving config-autoscaler: concurrency 100 x 0.7, windows 60 s and 6 s",
    period_s=2.0,
    scrape_s=1.0,
    default=lambda _: KpaParameters(),
    tunings=tunings,
    begin=begin,
    step=step,
)
