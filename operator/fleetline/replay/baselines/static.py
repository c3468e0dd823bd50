"""A fixed count: what a team without an autoscaler runs, sized for the peak."""

import math
from dataclasses import dataclass

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticParameters:
    """How many."""

    replicas: int


def peak(site: Site) -> StaticParameters:
    """Enough replicas for the largest minute, each at the ceiling of one alone."""
    return StaticParameters(replicas=_bounded(site, site.peak_rate_per_s / site.ceiling_rate_per_s))


def tunings(site: Site) -> tuple[StaticParameters, ...]:
    """Return counts from a quarter of the peak's, since bursts need not be met whole, to above."""
    top = peak(site).replicas
    shares = (0.25, 0.35, 0.45, 0.55, 0.65, 0.8, 1.0, 1.2)
    counts = sorted({_bounded(site, share * top) for share in shares})
    return tuple(StaticParameters(replicas=count) for count in counts)


def step(parameters: StaticParameters, _: None, __: Observation) -> tuple[None, int]:
    """Stay."""
    return None, parameters.replicas


def _bounded(site: Site, replicas: float) -> int:
    return max(site.min_replicas, min(site.max_replicas, math.ceil(replicas - 1e-9)))


BASELINE = Baseline(
    name="static",
    source="common practice: provisioned for the peak",
    period_s=60.0,
    scrape_s=None,
    default=peak,
    tunings=tunings,
    begin=lambda _, __: None,
    step=step,
)
