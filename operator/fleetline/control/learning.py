"""What a turn's observations teach: starts, lengths, rates, the margin, and the model's factors."""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetline.control.evidence import view_of
from fleetline.control.fleet import Fleet
from fleetline.control.health import starts_of, youngest_age_s
from fleetline.control.lengths import FIRST_DISPERSION, WINDOW_S
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Target
from fleetline.control.shape import workload_of
from fleetline.model.calibration import Sample, update
from fleetline.model.kv_cache import weight_bytes
from fleetline.model.replica import Replica
from fleetline.policy.attainment import Attainment, learn_margin_factor
from fleetline.policy.forecast import RateHistory, median_s
from fleetline.policy.history import Evidence
from fleetline.policy.startup import StartupTimes

CALIBRATION_PERIOD_S: Final = 60.0
"""Samples are means over about a minute: more often they would be counted twice. [s]"""

LOADING_BYTES_PER_S: Final = 1e9
"""Weights from network storage into accelerators, one node; for the prior of the start-up time."""

ENGINE_START_S: Final = 60.0
"""Container, engine, graph capture and warm-up; for the prior of the start-up time. [s]"""

BURSTY: Final = 2.0
"""Index of dispersion from which on the mean TTFT tells of bursts, not of how fast prompts are
read: factors learned from it were up to a quarter off where seconds burst less than minutes."""

LATENESS_S: Final = 300.0
"""Percentiles of one minute are noisy; a window of five is what counts. [s]"""

WORST_RATIO: Final = 2.0
"""A percentile beyond this multiple of its target counts as this: one stall is one event."""

INSIDE_SHARE: Final = 1 / 3
LONGEST_INSIDE_S: Final = 60.0
"""A gust of requests that is through before a replica could start needs none: what counts as inside
is the least of the readings over a third of the start-up time, at most a minute. [s]"""

LEAST_DIFFERENCES: Final = 8
LEAST_BIN_S: Final = 15.0
"""Counts of shorter bins are not looked at: scrapes are no closer. [s]"""

PRIOR_BINS: Final = 20.0
"""Bins of counts that weigh as much as the first guess of the dispersion."""

STILL_SHARE: Final = 0.2
"""Of differences that are exactly zero, above which scrapes are further apart than the bin."""

NORMAL_QUARTILE: Final = 0.6745
"""Median of the absolute value of a standard normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One turn's view, as far as there is something to learn from it."""

    fleet: Fleet
    target: Target
    seen: Observations | None
    ready: int
    now_s: float


def learn(memory: Memory, lesson: Lesson) -> Memory:
    """Return the memory with what this turn's observations teach."""
    learned = replace(memory, startup=_startup(memory.startup, lesson))
    seen = lesson.seen
    if seen is None:
        return learned
    learned = replace(learned, inside=_inside(memory, seen, lesson))
    rate_per_s = seen.arrival_rate_per_s.value
    if rate_per_s is not None:
        learned = replace(learned, rates=memory.rates.add(lesson.now_s, rate_per_s))
    lengths = memory.lengths.observe(
        seen, lesson.now_s, dispersion=dispersion_of(learned.rates, WINDOW_S)
    )
    learned = replace(learned, lengths=lengths)
    learned = replace(learned, lateness_ratio=_lateness_ratio(learned, lesson))
    learned = replace(learned, margin_factor=_margin_factor(learned, lesson))
    return _calibrate(learned, lesson)


def missed_objectives(fleet: Fleet, seen: Observations) -> tuple[str, ...]:
    """Objectives whose measured percentile is above its target, in words with the number."""
    missed = []
    for objective in fleet.objectives:
        reading = seen.latency_percentiles_s.get(str(objective))
        measured_s = None if reading is None else reading.value
        if measured_s is not None and measured_s > objective.target_s:
            missed.append(f"{objective} is missed: measured {measured_s:.3g} s")
    return tuple(missed)


def dispersion_of(rates: RateHistory, window_s: float) -> float:
    """
    Index of dispersion of arrival counts, from how rates over `window_s` [s] move in a short bin.

    From one turn to the next a sliding window gains a bin and loses another, so the difference
    holds the counts of two bins. The scrapes in a window span a bin less than it. Short bins tell
    bursts from demand that changes within minutes, which is the forecast's to expect; differences
    cancel the trend, their median ignores jumps. Bins grow while rates stand still between
    scrapes. The prior counts as `PRIOR_BINS` bins.
    """
    times, seen = rates.times_s, rates.rates_per_s
    if times.size < LEAST_DIFFERENCES:
        return FIRST_DISPERSION
    period_s = max(1e-3, median_s(np.diff(times)))
    most = max(1, round(window_s / period_s))
    first = min(most, max(1, math.ceil(LEAST_BIN_S / period_s - 1e-6)))
    mean_per_s = float(seen.mean())
    for lag in range(first, most + 1):
        bin_s = min(window_s, lag * period_s)
        span_s = max(window_s - bin_s, window_s / 2)
        moved = np.abs(seen[lag:] - seen[:-lag]) * span_s
        if moved.size < LEAST_DIFFERENCES or mean_per_s * bin_s < 1:
            continue
        if lag < most and float(np.mean(moved == 0.0)) > STILL_SHARE:
            continue
        measured = (float(np.median(moved)) / NORMAL_QUARTILE) ** 2 / 2 / (mean_per_s * bin_s)
        bins = moved.size / lag
        weight = bins / (bins + PRIOR_BINS)
        return max(1.0, weight * measured + (1 - weight) * FIRST_DISPERSION)
    return FIRST_DISPERSION


def startup_prior_s(replica: Replica) -> float:
    """Start-up time to assume before any was measured: load the weights, start the engine. [s]"""
    total_bytes = weight_bytes(replica) * replica.accelerators
    return ENGINE_START_S + total_bytes / LOADING_BYTES_PER_S


def _startup(startup: StartupTimes, lesson: Lesson) -> StartupTimes:
    alive = frozenset(pod.name for pod in lesson.target.pods)
    observed = startup.observe(starts_of(lesson.target), alive)
    replica = lesson.target.replica
    if observed.seconds or replica is None:
        return observed
    return replace(observed, prior_s=startup_prior_s(replica))


def _inside(memory: Memory, seen: Observations, lesson: Lesson) -> tuple[tuple[float, float], ...]:
    """
    Readings of what is inside all replicas, none older than a share of the start-up or a minute.

    The least of them counts, so what was seen of a part of the replicas must not be among them.
    """
    now_s = lesson.now_s
    since_s = now_s - min(LONGEST_INSIDE_S, INSIDE_SHARE * memory.startup.likely_s)
    recent = tuple(one for one in memory.inside if since_s <= one[0] < now_s)
    running, waiting = seen.running_requests.value, seen.waiting_requests.value
    is_whole = view_of(seen, lesson.target, now_s).evidence is Evidence.COMPLETE
    if running is None or waiting is None or not is_whole:
        return recent
    return (*recent, (now_s, running + waiting))


def _lateness_ratio(memory: Memory, lesson: Lesson) -> float | None:
    """Smooth the worst objective's percentile over its target: one noisy minute is no miss."""
    seen = lesson.seen
    readings = {} if seen is None else seen.latency_percentiles_s
    ratios = [
        reading.value / objective.target_s
        for objective in lesson.fleet.objectives
        if (reading := readings.get(str(objective))) is not None and reading.value is not None
    ]
    before = memory.lateness_ratio
    if not ratios:
        return before
    worst = min(max(ratios), WORST_RATIO)
    if before is None or memory.last_turn_s is None:
        return worst
    elapsed_s = max(0.0, lesson.now_s - memory.last_turn_s)
    weight = 1 - math.exp(-elapsed_s / LATENESS_S)
    return before + weight * (worst - before)


def _margin_factor(memory: Memory, lesson: Lesson) -> float:
    """Learn only where more replicas could have helped, and only from windows with latencies."""
    seen, fleet = lesson.seen, lesson.fleet
    if seen is None or memory.last_turn_s is None:
        return memory.margin_factor
    readings = seen.latency_percentiles_s.values()
    if not any(reading.is_known for reading in readings):
        return memory.margin_factor
    if lesson.target.replicas >= fleet.max_replicas or lesson.target.is_rolling_out:
        return memory.margin_factor
    return learn_margin_factor(
        memory.margin_factor,
        attainment=_attainment(memory, lesson.now_s),
        elapsed_s=lesson.now_s - memory.last_turn_s,
    )


def _attainment(memory: Memory, now_s: float) -> Attainment:
    """Whether requests are late, and may have come while too few replicas served."""
    if (memory.lateness_ratio or 0.0) <= 1:
        return Attainment.HELD
    was_short = memory.short_s is not None and now_s - memory.short_s < LATENESS_S
    return Attainment.LATE_WHILE_SHORT if was_short else Attainment.LATE


def _calibrate(memory: Memory, lesson: Lesson) -> Memory:
    """Offer one sample a minute to the model's calibration."""
    replica, seen, ready = lesson.target.replica, lesson.seen, lesson.ready
    since_s = memory.calibrated_s
    if since_s is not None and lesson.now_s - since_s < CALIBRATION_PERIOD_S:
        return memory
    sample = None if seen is None or ready < 1 else _sample(seen, lesson)
    if sample is not None and memory.lengths.shape.dispersion >= BURSTY:
        sample = replace(sample, time_to_first_token_s=None)
    if replica is None or sample is None or not memory.lengths.are_known:
        return memory
    state = update(memory.calibration, sample, replica, workload_of(memory.lengths.shape))
    return replace(memory, calibration=state, calibrated_s=lesson.now_s)


def _sample(seen: Observations, lesson: Lesson) -> Sample | None:
    """Means per replica; None while replicas are preempting or what is needed is not known."""
    rate, running = seen.arrival_rate_per_s.value, seen.running_requests.value
    if rate is None or running is None or (seen.preemption_rate_per_s.value or 0.0) > 0:
        return None
    if seen.is_partial or running <= 0:
        return None
    ready = lesson.ready
    stays_s, waiting = seen.end_to_end_s.value, seen.waiting_requests.value or 0.0
    youngest_s = youngest_age_s(lesson.target, lesson.now_s)
    return Sample(
        at_s=lesson.now_s,
        arrival_rate_per_s=rate / ready,
        # By Little's law over the window: the gauge is one moment, and its noise would flatten
        # what latencies owe to load (errors in variables).
        running_requests=max(0.0, running if stays_s is None else rate * stays_s - waiting) / ready,
        waiting_requests=waiting / ready,
        time_to_first_token_s=seen.time_to_first_token_s.value,
        inter_token_latency_s=seen.inter_token_latency_s.value,
        end_to_end_s=seen.end_to_end_s.value,
        requests=rate * WINDOW_S,
        youngest_replica_age_s=youngest_s if math.isfinite(youngest_s) else math.inf,
        replicas=ready,
    )
