"""
What Prometheus would know: the last scrape, and counters as far as scrapes saw them.

Counters belong to pods. The increase of a window is the sum over pods of differences between
scrapes, so what a pod did after its last scrape is lost, as with `increase()`.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetline.errors import ObservationError
from fleetline.replay.observation import Observation, ReplicaSample
from sim_cluster.serving.snapshot import Histogram, Snapshot

Floats = NDArray[np.float64]

RATE_WINDOW_S: Final = 60.0
"""`rate(...[1m])`: arrivals. [s]"""

LENGTH_WINDOW_S: Final = 300.0
"""`increase(...[5m])`: lengths and latencies. [s]"""

PEAK_WINDOW_S: Final = 60.0
"""`max_over_time(...[1m])`: what WVA reads. [s]"""

KEPT_S: Final = 660.0

FIRST_TOKENS, PROMPT, OUTPUT, FINISHED, HIT, QUERIED, PREEMPTIONS, TTFT_S, GAPS_S, E2E_S = range(10)
"""Columns of the counters of a pod; the buckets of its histograms follow."""

HISTOGRAMS: Final = (
    "time_to_first_token",
    "inter_token_latency",
    "time_per_output_token",
    "residence_time",
)


@dataclass(slots=True)
class Scraper:
    """Scrapes of one fleet; a store in virtual time."""

    latest: Snapshot | None = None
    _pods: dict[int, Floats] = field(default_factory=dict)
    _total: Floats = field(default_factory=lambda: np.zeros(0))
    _history: deque[tuple[float, int, Floats, int]] = field(default_factory=deque)
    """(time, arrivals, totals, requests in flight) of each scrape."""
    _recent: deque[Snapshot] = field(default_factory=deque)

    def scrape(self, seen: Snapshot) -> None:
        """Take in what every `/metrics` shows."""
        counters = _counters(seen)
        if not self._total.size:
            self._total = np.zeros(counters.shape[1])
        for number, values in zip(seen.replica.tolist(), counters, strict=True):
            before = self._pods.get(number)
            self._total = self._total + (values if before is None else values - before)
        self._pods = dict(zip(seen.replica.tolist(), counters, strict=True))
        self.latest = seen
        in_flight = int(seen.in_flight.sum()) + seen.held_requests
        self._history.append((seen.now_s, seen.arrivals, self._total, in_flight))
        while self._history[0][0] < seen.now_s - KEPT_S:
            self._history.popleft()
        self._recent.append(seen)
        while self._recent[0].now_s <= seen.now_s - PEAK_WINDOW_S:
            self._recent.popleft()

    def arrival_rate_per_s(self, now_s: float, window_s: float = RATE_WINDOW_S) -> float | None:
        """Rate of the router's counter over the scrapes of a window; None until there are two."""
        first = next((one for one in self._history if one[0] >= now_s - window_s), None)
        if first is None or self._history[-1][0] <= first[0]:
            return None
        last = self._history[-1]
        return (last[1] - first[1]) / (last[0] - first[0])

    def increase(self, now_s: float, window_s: float = LENGTH_WINDOW_S) -> Floats:
        """Increase of each counter over a window, summed over pods."""
        first = next((one for one in self._history if one[0] >= now_s - window_s), None)
        if first is None:
            return np.zeros_like(self._total)
        increase: Floats = self._history[-1][2] - first[2]
        return increase

    def buckets(self, increase: Floats, name: str) -> tuple[Floats, Floats]:
        """Bounds and increases of the buckets of a histogram, summed over pods."""
        if self.latest is None:
            raise ObservationError("cannot read histograms from the store: nothing was scraped")
        begin = E2E_S + 1
        for one in HISTOGRAMS:
            histogram: Histogram = getattr(self.latest, one)
            end = begin + histogram.bounds_s.size + 1
            if one == name:
                return histogram.bounds_s, increase[begin:end]
            begin = end
        raise KeyError(name)

    def mean_lengths(
        self, now_s: float, window_s: float = LENGTH_WINDOW_S
    ) -> tuple[float | None, float | None]:
        """Mean prompt and answer of recent requests; None if none came or finished. [tokens]"""
        seen = self.increase(now_s, window_s)
        if not seen.size:
            return None, None
        prompt = float(seen[PROMPT] / seen[FIRST_TOKENS]) if seen[FIRST_TOKENS] > 0 else None
        output = float(seen[OUTPUT] / seen[FINISHED]) if seen[FINISHED] > 0 else None
        return prompt, None if output is None else max(1.0, output)

    def prefix_hit_share(self, now_s: float) -> float:
        """Share of recent prompt tokens found in the prefix cache; 0 before any. 0..1"""
        seen = self.increase(now_s, LENGTH_WINDOW_S)
        if not seen.size or not seen[QUERIED] > 0:
            return 0.0
        return min(1.0, float(seen[HIT] / seen[QUERIED]))

    def peaks(self) -> dict[int, tuple[int, float]]:
        """Largest waiting and KV share of each pod over the last minute of scrapes."""
        peaks: dict[int, tuple[int, float]] = {}
        for seen in self._recent:
            rows = zip(
                seen.replica.tolist(), seen.waiting.tolist(), seen.kv_usage.tolist(), strict=True
            )
            for number, waiting, kv in rows:
                old_waiting, old_kv = peaks.get(number, (0, 0.0))
                peaks[number] = (max(old_waiting, waiting), max(old_kv, kv))
        return peaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between what the fleet may be scaled."""

    min_replicas: int
    max_replicas: int


def observe(
    scraper: Scraper, *, now_s: float, asked: int, ready: int, bounds: Bounds, has_peaks: bool
) -> Observation:
    """Compose what a baseline sees: counts from Kubernetes now, the rest as last scraped."""
    prompt, output = scraper.mean_lengths(now_s)
    return Observation(
        now_s=now_s,
        current_replicas=asked,
        ready_replicas=ready,
        samples=_samples(scraper, prompt, has_peaks=has_peaks),
        arrival_rate_per_s=scraper.arrival_rate_per_s(now_s),
        prompt_tokens=prompt,
        output_tokens=output,
        prefix_hit_share=scraper.prefix_hit_share(now_s),
        min_replicas=bounds.min_replicas,
        max_replicas=bounds.max_replicas,
    )


def _samples(
    scraper: Scraper, prompt: float | None, *, has_peaks: bool
) -> tuple[ReplicaSample, ...]:
    seen = scraper.latest
    if seen is None:
        return ()
    peaks = scraper.peaks() if has_peaks else {}
    rows = zip(
        seen.replica.tolist(),
        seen.running.tolist(),
        seen.waiting.tolist(),
        seen.kv_usage.tolist(),
        seen.is_draining.tolist(),
        strict=True,
    )
    return tuple(
        ReplicaSample(
            running=running,
            waiting=waiting,
            kv_utilization=kv,
            queued_tokens=waiting * (prompt or 0.0),
            waiting_peak=peaks.get(number, (None, None))[0],
            kv_peak=peaks.get(number, (None, None))[1],
        )
        for number, running, waiting, kv, is_draining in rows
        if not is_draining
    )


def _counters(seen: Snapshot) -> Floats:
    sums = np.stack(
        (
            seen.time_to_first_token.counts.sum(axis=1),
            seen.prompt_tokens,
            seen.generation_tokens,
            seen.finished,
            seen.prefix_hits_tokens,
            seen.prefix_queries_tokens,
            seen.preemptions,
            seen.time_to_first_token.sums_s,
            seen.inter_token_latency.sums_s,
            seen.residence_time.sums_s,
        ),
        axis=1,
    )
    return np.concatenate((sums, *(getattr(seen, name).counts for name in HISTOGRAMS)), axis=1)
