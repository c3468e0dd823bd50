"""
When a status is worth a write: at once if its structure changed, seldom if only numbers moved.

Measured numbers never stand still; writing each of them would wake every watcher at every turn. A
status differs in structure if a count, a condition, a reason or a name differs. Numbers may be off
by a third, and what a decision considered may be old, for eight turns, and for two minutes if turns
follow each other fast.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Self

Json = Mapping[str, Any]

VOLATILE: Final = frozenset(
    {
        *("replica", "workload", "objectives", "cost", "startupTime", "decision"),
        *("recommendedReplicas", "metricSources"),
    }
)
"""Fields of a status whose changes may wait."""

IGNORED: Final = frozenset({"lastMetricsTime", "samples", "uncertainty", "series"})
"""Fields that change at every turn and are written along with others."""

TOLERANCE: Final = 0.33
LEAST_DIFFERENCE: Final = 0.1
LEAST_REQUESTS: Final = 6.0
PERSISTENT_TURNS: Final = 8
PERSISTENT_S: Final = 120.0
"""Numbers are written after they were off for so many turns in a row, and for so long: two rate
windows at least, so that chance alone does not do it, and no more often where periods are short.
Both are the same at the default period. [s]"""
NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
COUNTS: Final = frozenset({"waitingRequests", "runningRequests"})


class Difference(Enum):
    """How a new status differs from what was written."""

    NONE = "none"
    NUMBERS = "numbers"
    STRUCTURE = "structure"


@dataclass(frozen=True, slots=True)
class Drift:
    """For how long the numbers have not been those that were written."""

    turns: int = 0
    since_s: float = 0.0
    """When the first of these turns was. [s]"""

    def after(self, differs: Difference, now_s: float) -> Self:
        """Return the drift after another turn."""
        if differs is Difference.NONE:
            return type(self)()
        return type(self)(self.turns + 1, self.since_s if self.turns else now_s)

    def is_due(self, now_s: float) -> bool:
        """Whether it lasts long enough to be no chance."""
        return self.turns >= PERSISTENT_TURNS and now_s - self.since_s >= PERSISTENT_S


NO_DRIFT: Final = Drift()


def difference(old: Json, new: Json) -> Difference:
    """Compare two statuses, forgiving of numbers that are near each other."""
    if not _alike(_structure(old), _structure(new), loose=frozenset()):
        return Difference.STRUCTURE
    alike = _alike(_numbers(old), _numbers(new), loose=VOLATILE)
    return Difference.NONE if alike else Difference.NUMBERS


def merge_patch(old: Json, new: Json) -> dict[str, Any]:
    """JSON merge patch (RFC 7386) that turns `old` into `new`; empty if they are equal."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                patch[name] = inner
        elif before != value:
            patch[name] = value
    return patch


def _structure(status: Json) -> Json:
    return {name: value for name, value in status.items() if name not in VOLATILE}


def _numbers(status: Json) -> Json:
    return {name: value for name, value in status.items() if name in VOLATILE}


def _alike(old: Any, new: Any, *, loose: frozenset[str], name: str = "") -> bool:
    if name in IGNORED or old == new:
        return True
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = (old.keys() | new.keys()) - IGNORED
        return all(_alike(old.get(key), new.get(key), loose=loose, name=key) for key in keys)
    if isinstance(old, list) and isinstance(new, list):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(
            _alike(one, other, loose=loose, name=name) for one, other in pairs
        )
    if isinstance(old, str) and isinstance(new, str):
        return old == new or _near(old, new, name)
    return bool(old == new)


def _near(old: str, new: str, name: str) -> bool:
    """Whether two texts are the same words with numbers that are near each other."""
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    least = LEAST_REQUESTS if name in COUNTS else LEAST_DIFFERENCE
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(
        abs(float(one) - float(other)) <= least + TOLERANCE * max(float(one), float(other))
        for one, other in pairs
    )
