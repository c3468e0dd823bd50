"""
Ray Serve's default policy on ongoing requests.

    ratio = ongoing / (target x N)      desired = ceil(N (1 + (ratio - 1) factor))

Ongoing requests, running and queued, are averaged over 30 s. A decision is applied only after its
direction has held for the upscale or downscale delay.

Source: ray-project/ray python/ray/serve/autoscaling_policy.py, config.py.
"""

import math
from dataclasses import dataclass, replace

from fleetline.replay.baselines.baseline import CONCURRENCY_SHARES, Baseline
from fleetline.replay.baselines.window import Window
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class RayServeParameters:
    """`autoscaling_config`, published defaults."""

    target_ongoing_requests: float = 2.0
    look_back_s: float = 30.0
    upscale_delay_s: float = 30.0
    downscale_delay_s: float = 600.0
    smoothing: float = 1.0
    """Factor on the deviation of the ratio from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayServeState:
    """Samples, and since when the count has wanted to go one way."""

    ongoing: Window
    direction: int = 0
    since_s: float = 0.0


def begin(parameters: RayServeParameters, _: int) -> RayServeState:
    """State after a start."""
    return RayServeState(ongoing=Window(parameters.look_back_s))


def replicas_for(parameters: RayServeParameters, current: int, ongoing: float) -> int:
    """Count that the ratio asks for, before delays."""
    ratio = ongoing / (parameters.target_ongoing_requests * current)
    desired = math.ceil(current * (1 + (ratio - 1) * parameters.smoothing) - 1e-9)
    if ratio == 0 and desired == current:
        return desired - 1
    return desired


def step(
    parameters: RayServeParameters, state: RayServeState, seen: Observation
) -> tuple[RayServeState, int]:
    """One look at the metrics, pushed every 10 s."""
    current = seen.current_replicas
    if seen.in_flight is None:
        return state, current
    window = state.ongoing.with_sample(seen.now_s, float(seen.in_flight))
    state = replace(state, ongoing=window)
    wanted = seen.bounded(replicas_for(parameters, current, window.mean()))
    direction = (wanted > current) - (wanted < current)
    if direction != state.direction:
        state = replace(state, direction=direction, since_s=seen.now_s)
    delay_s = parameters.upscale_delay_s if direction > 0 else parameters.downscale_delay_s
    if direction == 0 or seen.now_s - state.since_s < delay_s:
        return state, current
    return replace(state, direction=0), wanted


def tunings(site: Site) -> tuple[RayServeParameters, ...]:
    """Targets around the concurrency at the ceiling."""
    return tuple(
        RayServeParameters(target_ongoing_requests=max(0.25, share * site.ceiling_concurrency))
        for share in CONCURRENCY_SHARES
    )


BASELINE = Baseline(
    name="ray-serve",
    source="Ray Serve autoscaling_config: 2 ongoing requests, delays 30 s and 600 s",
    period_s=10.0,
    scrape_s=10.0,
    default=lambda _: RayServeParameters(),
    tunings=tunings,
    begin=begin,
    step=step,
)
