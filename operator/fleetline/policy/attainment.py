"""
A margin learned from how often the objectives held, so that nobody has to choose one.

    late minute: margin x 1.03        good minute: margin x 0.99985

The two balance where one minute in two hundred is late: what is late comes in clusters, so that of
windows of five minutes about one in a hundred is missed.
"""

from typing import Final

RAISE_PER_MINUTE: Final = 0.03
LOWER_PER_MINUTE: Final = 0.00015
LOWEST: Final = 0.85
HIGHEST: Final = 2.5
FIRST: Final = 1.05
"""Where learning starts: on replayed traces, schedules that know the future do best with 1.05 to
1.10."""

LONGEST_STEP_S: Final = 120.0
SECONDS_PER_MINUTE: Final = 60.0


def learn_margin_factor(margin_factor: float, *, missed: int, elapsed_s: float) -> float:
    """
    Return the margin after `elapsed_s` seconds in which `missed` objectives (0 or more) failed.

    Parameters
    ----------
    margin_factor
        The margin so far.
    missed
        Objectives whose measured percentile was above its target.
    elapsed_s
        Time since the margin was last learned. [s]
    """
    minutes = min(max(elapsed_s, 0.0), LONGEST_STEP_S) / SECONDS_PER_MINUTE
    per_minute = RAISE_PER_MINUTE if missed else -LOWER_PER_MINUTE
    return min(HIGHEST, max(LOWEST, margin_factor * (1 + per_minute * minutes)))
