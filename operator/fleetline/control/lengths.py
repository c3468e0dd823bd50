"""What requests look like, learned: lengths and their distribution, cache hits, burstiness."""

import math
from dataclasses import dataclass, replace
from typing import Final, Self

from fleetline.control.ports import Observations
from fleetline.control.shape import (
    Points,
    Shape,
    points_of,
    rounded,
    rounded_dispersion,
    rounded_share,
)

TIME_CONSTANT_S: Final = 300.0
LEAST_REQUESTS: Final = 5.0
"""Means over fewer requests are ignored: one long request is not a change of workload."""

POINTS_REFRESH_S: Final = 900.0
"""Histograms of lengths cover half an hour. [s]"""
WINDOW_S: Final = 60.0
HYSTERESIS: Final = 0.04
"""A mean has to leave its step by this much, relative, before another step is taken."""

FIRST_PROMPT_TOKENS: Final = 1000.0
FIRST_OUTPUT_TOKENS: Final = 250.0
FIRST_DISPERSION: Final = 1.4
"""Measured for chat; assumed until the fleet's own arrivals are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedLengths:
    """What is known about a fleet's requests; immutable."""

    prompt_tokens: float | None = None
    output_tokens: float | None = None
    hit_share: float = 0.0
    dispersion: float = FIRST_DISPERSION
    points: Points = ()
    points_s: float | None = None
    updated_s: float | None = None
    requests: float = 0.0
    """How many requests the means rest on; old ones fade with the time constant."""
    shape: Shape = Shape(
        prompt_tokens=rounded(FIRST_PROMPT_TOKENS),
        output_tokens=rounded(FIRST_OUTPUT_TOKENS),
        dispersion=rounded_dispersion(FIRST_DISPERSION),
    )
    """The rounded form, with hysteresis, that the model is asked with."""

    @property
    def are_known(self) -> bool:
        """Whether any request was measured; before, the shape is an assumption."""
        return self.prompt_tokens is not None and self.output_tokens is not None

    def observe(self, seen: Observations, now_s: float, *, dispersion: float) -> Self:
        """Learn from one turn; unknown readings and thin windows leave everything as it was."""
        prompt, output = seen.prompt_tokens.value, seen.output_tokens.value
        requests = (seen.arrival_rate_per_s.value or 0.0) * WINDOW_S
        if prompt is None or output is None or prompt < 1 or requests < LEAST_REQUESTS:
            return self
        weight, requests = self._weight_of_news(seen.arrival_rate_per_s.value or 0.0, now_s)
        learned = replace(
            self,
            prompt_tokens=_blend(self.prompt_tokens, prompt, weight),
            output_tokens=_blend(self.output_tokens, max(1.0, output), weight),
            hit_share=self._hits(seen, weight),
            dispersion=dispersion,
            updated_s=now_s,
            requests=requests,
        )
        due = self.points_s is None or now_s - self.points_s >= POINTS_REFRESH_S
        if seen.lengths is not None and due:
            learned = replace(learned, points=points_of(seen.lengths), points_s=now_s)
        return replace(learned, shape=learned.next_shape())

    def next_shape(self) -> Shape:
        """Return the rounded shape: an old step is kept while the mean is near it."""
        return Shape(
            prompt_tokens=_step(self.shape.prompt_tokens, self.prompt_tokens),
            output_tokens=_step(self.shape.output_tokens, self.output_tokens),
            hit_share=self.shape.hit_share
            if abs(self.hit_share - self.shape.hit_share) < 2 * HYSTERESIS
            else rounded_share(self.hit_share),
            dispersion=rounded_dispersion(self.dispersion),
            points=self.points,
        )

    def _weight_of_news(self, arrival_rate_per_s: float, now_s: float) -> tuple[float, float]:
        """
        Weight of this turn's means, and the requests that both rest on together.

        Every request counts alike: the first to complete are the short ones, and must not set the
        mean for minutes.
        """
        if self.updated_s is None:
            return 1.0, LEAST_REQUESTS
        elapsed_s = max(0.0, now_s - self.updated_s)
        kept = self.requests * math.exp(-elapsed_s / TIME_CONSTANT_S)
        new = arrival_rate_per_s * min(elapsed_s, WINDOW_S)
        total = kept + new
        return (new / total if total > 0 else 0.0), total

    def _hits(self, seen: Observations, weight: float) -> float:
        """Share of cached prompt tokens; preemptions would count as hits, so not during them."""
        share = seen.prefix_hit_share.value
        if share is None or (seen.preemption_rate_per_s.value or 0.0) > 0:
            return self.hit_share
        return min(1.0, _blend(self.hit_share, share, weight))


def _blend(old: float | None, new: float, weight: float) -> float:
    return new if old is None else old + (new - old) * weight


def _step(step: float, mean: float | None) -> float:
    if mean is None or abs(math.log(mean / step)) <= HYSTERESIS:
        return step
    return rounded(mean)
