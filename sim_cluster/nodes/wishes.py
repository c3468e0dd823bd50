"""What a pod's annotations ask of its simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sim_cluster.nodes.startup import StartupTime, parse_startup_time

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTUP_ANNOTATION: Final = "sim.fleetline.dev/startup"
"""Time from the binding to readiness, for example `8s` or `lognormal(60s,0.4)`."""
FAIL_ANNOTATION: Final = "sim.fleetline.dev/fail"
"""`image-pull`, `start` or `readiness`."""
FAILURES: Final = ("image-pull", "start", "readiness")


@dataclass(frozen=True, slots=True)
class Wishes:
    """How this pod is to behave."""

    startup: StartupTime
    failure: str = ""
    complaint: str = ""
    """Why an annotation was not understood."""


def read_wishes(pod: Mapping[str, Any], default: StartupTime) -> Wishes:
    """Read the annotations; what cannot be understood is the default, and a complaint."""
    annotations = pod["metadata"].get("annotations") or {}
    failure = annotations.get(FAIL_ANNOTATION, "")
    if failure and failure not in FAILURES:
        complaint = f"{FAIL_ANNOTATION} must be one of {', '.join(FAILURES)}, got {failure!r}"
        return Wishes(default, complaint=complaint)
    text = annotations.get(STARTUP_ANNOTATION)
    if text is None:
        return Wishes(default, failure)
    try:
        return Wishes(parse_startup_time(text), failure)
    except ValueError as error:
        return Wishes(default, failure, f"{STARTUP_ANNOTATION}: {error}")
