"""
Pods whose counter of completions covers a part of the window only, so that its rate is too small.

    gone or back  Prometheus was away, or the engine did not show it: not to be believed for a while
    new           some engines show a counter only when it has counted: all of it is in the window
    seldom        scraped less often than the others: it stays short, and is whole for what it is
"""

from collections.abc import Mapping
from typing import Final

from fleetline.adapters.pod_rows import Place, PodRows

LONGEST_WINDOWS: Final = 2.0
"""What goes and comes back is whole again after the window that goes and the one that comes."""

NEW_COUNTS: Final = 2.0
NEW_SHARE: Final = 1.5
"""What a new counter may show: a few counts, and what its rate makes of the window and a half."""


class ShortCounters:
    """Remembers since when pods are short."""

    def __init__(self) -> None:
        """Know none yet."""
        self._since_s: dict[Place, float] = {}
        self._lately_s = 0.0

    def note(self, short: PodRows | None, *, window_s: float, now_s: float) -> None:
        """Take the pods that are short at a moment."""
        self._since_s = {place: self._since_s.get(place, now_s) for place in short or ()}
        self._lately_s = now_s - LONGEST_WINDOWS * window_s

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
