"""What can go wrong with a scrape: how a pod's `/metrics` misbehaves until it is told otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ScrapeFault(StrEnum):
    """Ways in which an exposition fails its readers."""

    NONE = "none"
    SILENT = "silent"
    """The connection is closed without an answer."""
    ERROR = "error"
    """500 instead of metrics."""
    HANG = "hang"
    """An answer that never comes."""
    FROZEN = "frozen"
    """The values of the moment at which the fault began."""
    NAN = "nan"
    """Every value is NaN."""
    MISSING = "missing"
    """Some families are gone."""


@dataclass(frozen=True, slots=True)
class ScrapeState:
    """A fault and its details."""

    fault: ScrapeFault = ScrapeFault.NONE
    families: frozenset[str] = frozenset()
    """Which families are missing."""
    frozen_text: str = ""


HEALTHY = ScrapeState()
