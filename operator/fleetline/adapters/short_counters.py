"""
Pods whose counter of completions covers a part of the window only, so that its rate is too small.

    gone or back  Prometheus was away, or the engine did not show it: not to be believed for a while
    new           some engines show a counter only when it has counted: all of it is in the window
    seldom        scraped less often than the others: it stays short, and is whole for what it is

Counting the samples of 20,000 pods takes Prometheus seconds. So it is asked only about fleets whose
completions fell by more than a lost scrape explains, came up from nothing, or were short before.
"""

from collections.abc import Collection, Mapping
from typing import Final

from fleetline.adapters.pod_rows import Place, PodRows

LONGEST_WINDOWS: Final = 2.0
"""What goes and comes back is whole again after the window that goes and the one that comes."""

NEW_COUNTS: Final = 2.0
NEW_SHARE: Final = 1.5
"""What a new counter may show: a few counts, and what its rate makes of the window and a half."""

FALLEN_SHARE: Final = 0.72
"""Of what was known to be whole: less than one lost scrape of four leaves, which is 0.75."""

LEAST_COMPLETIONS: Final = 20.0
"""Fewer in a window fall by chance at every other turn: of so few, a gap may be read too low."""


class ShortCounters:
    """Remembers what completed, and since when pods are short."""

    def __init__(self) -> None:
        """Know none yet."""
        self._since_s: dict[Place, float] = {}
        self._lately_s = 0.0
        self._whole_per_s: dict[str, float] = {}
        """By fleet: the most that completed since its pods were last known not to be short."""
        self._asked: dict[str, tuple[float, Collection[Place]]] = {}
        """By fleet that is asked about: what completes now, and its pods."""

    def suspects(
        self,
        completed: PodRows | None,
        pods: Mapping[str, Collection[Place]],
        *,
        window_s: float,
    ) -> frozenset[Place]:
        """Pods of those fleets, by their keys, about which Prometheus has to be asked."""
        before, self._whole_per_s, self._asked = self._whole_per_s, {}, {}
        least_per_s = LEAST_COMPLETIONS / window_s
        for key, places in pods.items():
            total_per_s = completed.total(places) if completed else 0.0
            whole_per_s = before.get(key, 0.0)
            self._whole_per_s[key] = max(total_per_s, whole_per_s)
            if self._whole_per_s[key] < least_per_s:
                continue
            has_changed = total_per_s < FALLEN_SHARE * whole_per_s or whole_per_s < least_per_s
            if has_changed or not self._since_s.keys().isdisjoint(places):
                self._asked[key] = total_per_s, places
        return frozenset(place for _, places in self._asked.values() for place in places)

    def note(self, short: PodRows | None, *, window_s: float, now_s: float) -> None:
        """Take the pods that are short at a moment, of those that were asked about."""
        self._since_s = {place: self._since_s.get(place, now_s) for place in short or ()}
        self._lately_s = now_s - LONGEST_WINDOWS * window_s
        for key, (total_per_s, places) in self._asked.items():
            if self._since_s.keys().isdisjoint(places):
                self._whole_per_s[key] = total_per_s

    def among(
        self,
        namespace: str,
        counts: Mapping[str, float],
        rates_per_s: Mapping[str, float],
        *,
        window_s: float,
    ) -> frozenset[str]:
        """Return those of some pods, by their counts, whose rates are not to be believed."""
        return frozenset(
            pod
            for pod, count in counts.items()
            if self._since_s.get((namespace, pod), self._lately_s) >= self._lately_s
            and count > NEW_COUNTS + NEW_SHARE * window_s * rates_per_s.get(pod, 0.0)
        )
