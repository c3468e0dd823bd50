"""How much of a fleet a turn could see; nothing is lowered on less than all of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetline.control.ports import Observations, Pod, Target
from fleetline.policy.history import Evidence

MATURE_S: Final = 75.0
"""A replica that has been ready this long must report: a rate window and a scrape. [s]"""

STALE_S: Final = 90.0
"""Samples older than this are not the present: three scrapes of 30 s. [s]"""

MOST_SKEW_S: Final = 30.0
"""Clocks further apart than this make ages of pods and samples meaningless; NTP holds a second,
and two scrapes are 30 s. [s]"""


class Gap(StrEnum):
    """What is missing from the view of a fleet: reasons of the condition MetricsAvailable."""

    NO_SERIES = "NoSeries"
    FROZEN = "Frozen"
    CLOCK_SKEW = "ClockSkew"
    PARTIAL = "Partial"
    STALE = "Stale"
    INCOMPLETE = "Incomplete"


@dataclass(frozen=True, slots=True)
class View:
    """How much was seen."""

    evidence: Evidence
    gap: Gap | None = None
    because: str = ""
    """What is missing, in words; empty if nothing is, or if the reading itself says so."""


def view_of(seen: Observations | None, target: Target, now_s: float) -> View:
    """Judge what was seen: complete, incomplete (good for an increase only) or unknown."""
    if seen is None:
        return View(Evidence.UNKNOWN, Gap.NO_SERIES)
    if seen.arrival_rate_per_s.value is None:
        frozen = seen.frozen_replicas > 0 and seen.reporting_replicas == 0
        return View(Evidence.UNKNOWN, Gap.FROZEN if frozen else Gap.NO_SERIES)
    if seen.is_partial:
        return View(Evidence.INCOMPLETE, Gap.PARTIAL, "Prometheus answered in part")
    skew_s = seen.clock_skew_s
    if skew_s is not None and abs(skew_s) > MOST_SKEW_S:
        side = "ahead of" if skew_s > 0 else "behind"
        because = f"Prometheus' clock is {abs(skew_s):.0f} s {side} the operator's"
        return View(Evidence.INCOMPLETE, Gap.CLOCK_SKEW, because)
    age_s = seen.sample_age_s.value
    if age_s is not None and age_s > STALE_S:
        because = f"the newest samples are {age_s:.0f} s old"
        return View(Evidence.INCOMPLETE, Gap.STALE, because)
    return _view_of_replicas(seen, target, now_s)


def _view_of_replicas(seen: Observations, target: Target, now_s: float) -> View:
    for name, reading in (("running", seen.running_requests), ("waiting", seen.waiting_requests)):
        if not reading.is_known:
            because = f"{name} requests are unknown: {reading.unknown_because}"
            return View(Evidence.INCOMPLETE, Gap.INCOMPLETE, because)
    mature = sum(_must_report(pod, now_s) for pod in target.pods)
    if seen.frozen_replicas:
        because = f"metrics of {seen.frozen_replicas} replicas stand still or are old"
        return View(Evidence.INCOMPLETE, Gap.FROZEN, because)
    if seen.reporting_replicas < mature:
        because = f"{seen.reporting_replicas} of {mature} replicas report"
        return View(Evidence.INCOMPLETE, Gap.INCOMPLETE, because)
    return View(Evidence.COMPLETE)


def _must_report(pod: Pod, now_s: float) -> bool:
    """Whether a pod has been ready for long; one that will be ready is older than it looks."""
    if pod.ready_since_s is None or pod.is_terminating:
        return False
    age_s = now_s - pod.ready_since_s
    return age_s > MATURE_S or age_s < -MOST_SKEW_S
