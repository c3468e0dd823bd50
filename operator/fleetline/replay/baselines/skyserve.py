"""
SkyServe's request-rate autoscaler with hysteresis counters.

    desired = ceil(requests of the last 60 s / 60 / target)

It must persist for 300 s upwards or 1200 s downwards, counted in ticks of 20 s; one tick that does
not agree resets the counter.

Source: skypilot-org/skypilot sky/serve/autoscalers.py (RequestRateAutoscaler).
"""

import math
from dataclasses import dataclass

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site

SAFE_SHARE = 0.8
"""Share of the ceiling at which a careful user would set `target_qps_per_replica`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkyServeParameters:
    """`replica_policy`; the target has no default and must be set by the user."""

    target_rate_per_s: float
    """`target_qps_per_replica`. [1/s]"""
    upscale_delay_s: float = 300.0
    downscale_delay_s: float = 1200.0
    tick_s: float = 20.0


@dataclass(frozen=True, slots=True)
class SkyServeState:
    """Ticks in a row that asked for more, or for fewer."""

    ups: int = 0
    downs: int = 0


def step(
    parameters: SkyServeParameters, state: SkyServeState, seen: Observation
) -> tuple[SkyServeState, int]:
    """One tick of the controller."""
    current = seen.current_replicas
    if seen.arrival_rate_per_s is None:
        return SkyServeState(), current
    wanted = seen.bounded(math.ceil(seen.arrival_rate_per_s / parameters.target_rate_per_s - 1e-9))
    if current == 0 and wanted > 0:
        return SkyServeState(), wanted
    if wanted > current:
        state = SkyServeState(ups=state.ups + 1)
        due = state.ups >= parameters.upscale_delay_s / parameters.tick_s
    elif wanted < current:
        state = SkyServeState(downs=state.downs + 1)
        due = state.downs >= parameters.downscale_delay_s / parameters.tick_s
    else:
        return SkyServeState(), current
    return (SkyServeState(), wanted) if due else (state, current)


def _at(share: float, site: Site) -> SkyServeParameters:
    return SkyServeParameters(target_rate_per_s=share * site.ceiling_rate_per_s)


BASELINE = Baseline(
    name="skyserve",
    source="SkyServe: delays 300 s and 1200 s, tick 20 s; target by users",
    period_s=20.0,
    scrape_s=1.0,
    default=lambda site: _at(SAFE_SHARE, site),
    tunings=lambda site: tuple(
        _at(share, site) for share in (0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2, 1.4)
    ),
    begin=lambda _, __: SkyServeState(),
    step=step,
)
