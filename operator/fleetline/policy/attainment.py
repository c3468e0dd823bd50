"""
A margin learned from how often the objectives held, so that nobody has to choose one.

    late although enough replicas served:  margin x 1.02 a minute
    late while replicas were missing:      margin x 1.01 a minute
    otherwise:                             the margin's distance from its rest halves in four hours

Lateness with enough replicas says that the ceiling is too high; without, that demand rises faster
than was expected, which also wants more replicas, but may have been a jump that nobody foresees.
The margin fades: workloads change, and what was learned with three replicas is not true with
thirty.
"""

import math
from enum import Enum
from typing import Final


class Attainment(Enum):
    """How the objectives fared in a stretch of time; the value is the margin's growth a minute."""

    HELD = 0.0
    LATE_WHILE_SHORT = 0.01
    LATE = 0.02


HALF_LIFE_S: Final = 4 * 3600.0
REST: Final = 1.05
"""Where the margin returns to: at the ceiling the percentile of long runs is the target, so every
other short window is above it. On replayed days 5 % bring 99 % of five-minute windows below."""

HIGHEST: Final = 1.6
FIRST: Final = 1.1
"""Where learning starts, before the model has been compared with this fleet."""

LONGEST_STEP_S: Final = 120.0
SECONDS_PER_MINUTE: Final = 60.0


def learn_margin_factor(margin_factor: float, *, attainment: Attainment, elapsed_s: float) -> float:
    """
    Return the margin after `elapsed_s` seconds.

    Parameters
    ----------
    margin_factor
        The margin so far.
    attainment
        Whether an objective was missed, and whether replicas were missing then.
    elapsed_s
        Time since the margin was last learned. [s]
    """
    since_s = min(max(elapsed_s, 0.0), LONGEST_STEP_S)
    if attainment is Attainment.HELD:
        return REST + (margin_factor - REST) * math.exp(-math.log(2) * since_s / HALF_LIFE_S)
    growth_per_s: float = attainment.value / SECONDS_PER_MINUTE
    raised = margin_factor * (1 + growth_per_s * since_s)
    return max(margin_factor, min(HIGHEST, raised))
