"""What one fleet's turns hand to the next: all that was learned, immutable, rebuilt from status."""

from dataclasses import dataclass, field
from typing import Final

from fleetline.control.lengths import LearnedLengths
from fleetline.model.calibration import CalibrationState
from fleetline.policy import attainment
from fleetline.policy.forecast import RateHistory
from fleetline.policy.history import History
from fleetline.policy.startup import StartupTimes

UNKNOWN_TURNS_BEFORE_ALARM: Final = 3
"""One failed scrape or query is not an outage."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """State of one fleet between turns; losing it delays decreases and never causes one."""

    history: History = field(default_factory=History)
    rates: RateHistory = field(default_factory=RateHistory.empty)
    startup: StartupTimes = field(default_factory=StartupTimes)
    lengths: LearnedLengths = field(default_factory=LearnedLengths)
    calibration: CalibrationState = field(default_factory=CalibrationState)
    calibrated_s: float | None = None
    """When a calibration sample was last offered. [s]"""
    margin_factor: float = attainment.FIRST
    lateness_ratio: float | None = None
    """Measured percentile over its target, the worst objective, smoothed; None before any."""
    inside: tuple[tuple[float, float], ...] = ()
    """Running and waiting requests of the last minute of turns: (time [s], requests)."""
    short_s: float | None = None
    """When fewer replicas served than the model asks for the arrivals of that moment. [s]"""
    unknown_turns: int = 0
    """Turns in a row without metrics."""
    incomplete_turns: int = 0
    """Turns in a row with some, but not all."""
    last_scale_s: float | None = None
    last_metrics_s: float | None = None
    last_turn_s: float | None = None
    target_uid: str = ""
