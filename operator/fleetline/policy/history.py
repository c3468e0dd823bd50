"""
What earlier turns left behind: recommendations, changes, and since when the view is unbroken.

The history is immutable; each turn returns the next one. After a restart it is rebuilt from the
fleet's status. Losing it may delay a decrease, never cause one.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, Self

LONGEST_PERIOD_S: Final = 3600.0
"""Nothing in a behavior looks further back: windows end at 3600 s, policy periods at 1800 s."""

CLOCK_TOLERANCE_S: Final = 1.0
"""A clock may step back by this much (NTP) without the history being doubted. [s]"""

LONGEST_PAUSE_S: Final = 180.0
"""Two turns further apart than this are not one unbroken view (suspended machine, clock jump)."""

RESTORE_ONCE_IN_S: Final = 300.0
"""A count taken away is given back at once only this often; more often is a fight."""


class Evidence(Enum):
    """How much of the fleet a turn could see."""

    COMPLETE = auto()
    INCOMPLETE = auto()
    """Some replicas or series are missing: good for an increase, not for a decrease."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What demand alone asked for at one moment."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """One change of the count that we wrote."""

    at_s: float
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """An immutable window over past turns of one fleet."""

    recommendations: tuple[Recommendation, ...] = ()
    events: tuple[ScaleEvent, ...] = ()
    left_replicas: int | None = None
    """The count as the last turn left it; None before the first turn."""
    complete_since_s: float | None = None
    """Since when every turn saw fresh and complete samples; None if the last one did not. [s]"""
    last_turn_s: float | None = None
    foreign_event_s: float | None = None
    """Last change by an earlier process, of unknown size: nothing more within its period. [s]"""
    restored_s: float | None = None
    """When a count that somebody took away was last given back. [s]"""

    def lowest_since(self, since_s: float, replicas: int) -> int:
        """Lowest recommendation from `since_s` on, `replicas` included."""
        return min(
            [replicas, *(past.replicas for past in self.recommendations if past.at_s >= since_s)]
        )

    def highest_since(self, since_s: float, replicas: int) -> int:
        """Highest recommendation from `since_s` on, `replicas` included."""
        return max(
            [replicas, *(past.replicas for past in self.recommendations if past.at_s >= since_s)]
        )

    def added_since(self, since_s: float) -> int:
        """Replicas added from `since_s` on."""
        return sum(
            max(0, event.after - event.before) for event in self.events if event.at_s > since_s
        )

    def removed_since(self, since_s: float) -> int:
        """Replicas removed from `since_s` on."""
        return sum(
            max(0, event.before - event.after) for event in self.events if event.at_s > since_s
        )

    def begin(self, now_s: float, current_replicas: int) -> Self:
        """
        Open a turn: forget what a clock jump or a long pause made doubtful, notice others' writes.

        A count that somebody raised counts as a recommendation: it is respected for a window.
        """
        history = self
        if self.last_turn_s is not None:
            elapsed_s = now_s - self.last_turn_s
            if elapsed_s < -CLOCK_TOLERANCE_S or elapsed_s > LONGEST_PAUSE_S:
                history = replace(
                    history,
                    complete_since_s=None,
                    recommendations=tuple(
                        past for past in self.recommendations if past.at_s <= now_s
                    ),
                    events=tuple(replace(past, at_s=min(past.at_s, now_s)) for past in self.events),
                )
        if self.left_replicas is not None and current_replicas > self.left_replicas:
            raised = Recommendation(now_s, current_replicas)
            history = replace(history, recommendations=(*history.recommendations, raised))
        return history

    def end(
        self,
        now_s: float,
        *,
        recommended_replicas: int | None,
        left_replicas: int,
        evidence: Evidence,
        keep_s: float = LONGEST_PERIOD_S,
        event: ScaleEvent | None = None,
    ) -> Self:
        """Close a turn: add what it recommended and wrote, drop what is older than `keep_s`."""
        since_s = now_s - keep_s
        recommendations = tuple(past for past in self.recommendations if past.at_s >= since_s)
        if recommended_replicas is not None:
            recommendations = (*recommendations, Recommendation(now_s, recommended_replicas))
        events = tuple(past for past in self.events if past.at_s >= since_s)
        started_s = now_s if self.complete_since_s is None else self.complete_since_s
        return replace(
            self,
            recommendations=recommendations,
            events=events if event is None else (*events, event),
            left_replicas=left_replicas,
            complete_since_s=started_s if evidence is Evidence.COMPLETE else None,
            last_turn_s=now_s,
        )
