"""
KubeAI's autoscaler on active requests.

    desired = ceil(mean of the last 600 s / targetRequests)

Down only after `ceil(scaleDownDelay / interval)` lower results in a row.

Source: substratusai/kubeai internal/modelautoscaler/{autoscaler,state}.go.
"""

import math
from dataclasses import dataclass

from fleetline.replay.baselines.baseline import CONCURRENCY_SHARES, Baseline
from fleetline.replay.baselines.window import Window
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeAiParameters:
    """`modelAutoscaling` and a Model's `targetRequests`, published defaults."""

    target_requests: float = 100.0
    time_window_s: float = 600.0
    interval_s: float = 10.0
    scale_down_delay_s: float = 30.0

    @property
    def lower_results(self) -> int:
        """Lower results in a row that a scale-down takes."""
        return math.ceil(self.scale_down_delay_s / self.interval_s)


@dataclass(frozen=True, slots=True)
class KubeAiState:
    """Samples, and the lower results so far."""

    active: Window
    lower: int = 0


def step(
    parameters: KubeAiParameters, state: KubeAiState, seen: Observation
) -> tuple[KubeAiState, int]:
    """One interval of 10 s."""
    current = seen.current_replicas
    if seen.in_flight is None:
        return state, current
    window = state.active.with_sample(seen.now_s, float(seen.in_flight))
    wanted = seen.bounded(math.ceil(window.mean() / parameters.target_requests - 1e-9))
    if wanted >= current:
        return KubeAiState(window), wanted
    lower = state.lower + 1
    if lower < parameters.lower_results:
        return KubeAiState(window, lower), current
    return KubeAiState(window), wanted


def tunings(site: Site) -> tuple[KubeAiParameters, ...]:
    """Targets around the concurrency at the ceiling."""
    return tuple(
        KubeAiParameters(target_requests=max(0.25, share * site.ceiling_concurrency))
        for share in CONCURRENCY_SHARES
    )


BASELINE = Baseline(
    name="kubeai",
    source="KubeAI: targetRequests 100, window 600 s, scaleDownDelay 30 s",
    period_s=10.0,
    scrape_s=10.0,
    default=lambda _: KubeAiParameters(),
    tunings=tunings,
    begin=lambda parameters, _: KubeAiState(Window(parameters.time_window_s)),
    step=step,
)
