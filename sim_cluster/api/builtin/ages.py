"""Durations the way kubectl shows ages."""

from datetime import UTC, datetime

_DAY_S = 86400
_STEPS: tuple[tuple[int, int, str, int, str], ...] = (
    (120, 1, "s", 0, ""),
    (600, 60, "m", 1, "s"),
    (3 * 3600, 60, "m", 0, ""),
    (8 * 3600, 3600, "h", 60, "m"),
    (48 * 3600, 3600, "h", 0, ""),
    (8 * _DAY_S, _DAY_S, "d", 3600, "h"),
    (730 * _DAY_S, _DAY_S, "d", 0, ""),
    (2920 * _DAY_S, 365 * _DAY_S, "y", _DAY_S, "d"),
)
"""Below how many seconds, the unit that is shown, and the smaller unit of the rest (0: none)."""


def duration_text(seconds: float) -> str:
    """A duration in two units at most, fewer when it is long."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    for below, unit_s, unit, rest_s, rest_unit in _STEPS:
        if whole < below:
            rest = whole % unit_s // rest_s if rest_s else 0
            return f"{whole // unit_s}{unit}" + (f"{rest}{rest_unit}" if rest else "")
    return f"{whole // (365 * _DAY_S)}y"


def since(text: str | None) -> str:
    """How long ago a time was."""
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return "<invalid>"
    return duration_text((datetime.now(UTC) - then).total_seconds())
