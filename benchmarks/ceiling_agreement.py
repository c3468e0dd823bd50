"""
The ceiling against iteration-level simulation, alone and pooled.

    python benchmarks/ceiling_agreement.py [--points N] [--random SEED] [--verbose]

On a grid of accelerators, models, workloads, budgets and objectives, or on points drawn at random
(which draw slots, percentiles and bursty arrivals as well), for one replica and for 4, 16 and 64
behind a least-loaded router: the largest rate per replica at which the simulated fleet keeps every
percentile, beside the model's. Bars: median 4 %, all within 10 %.

The simulated ceiling is an estimate itself: its standard error, from 20 batches of one run, is
printed. Runs are long enough for it to be below 1 %.
"""

import argparse
import itertools
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ceiling_points import Point, drawn, grid
from numpy.typing import NDArray

from fleetline.model.ceiling import Question, ceilings
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.objective import Metric
from fleetline.model.roofline import step_time
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.results import RequestResults

REQUESTS = {1: 120_000, 4: 140_000, 16: 160_000, 64: 240_000}
"""Requests of one run, by replicas."""
BATCHES = 20
MOST_ERROR = 0.1
SEEN = (0.2, 0.97)
"""Part of the requests that counts: before it the fleet fills, after it answers are cut off."""
FEWEST = 2e-4
"""Share of missed requests added to both sides, so that logarithms are finite."""
BURST_S = 1.0
LEAST_RATIO = 0.02
"""Simulated over expected ceiling below which no rate at all keeps the objectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A ceiling found by simulation, with its standard error relative to it."""

    rate_per_s: float
    error: float


def arrivals(point: Point, rate_per_s: float, count: int) -> Arrivals:
    """Requests at the router: Poisson, or in bursts of a second with the point's dispersion."""
    random = np.random.default_rng(7)
    beyond = point.workload.dispersion - 1.0
    if beyond > 0:
        seconds = math.ceil(1.05 * count / rate_per_s) + 5
        counts = random.poisson(random.gamma(rate_per_s * BURST_S / beyond, beyond, seconds))
        begins_s = np.repeat(BURST_S * np.arange(seconds), counts)
        at_s = np.sort(begins_s + BURST_S * random.random(begins_s.size))[:count]
    else:
        at_s = np.cumsum(random.exponential(1.0 / rate_per_s, count))
    index = np.random.default_rng(8).integers(0, point.prompts.size, at_s.size)
    return Arrivals.of(at_s, point.prompts[index], point.outputs[index])


def missed(point: Point, rate_per_s: float, replicas: int) -> tuple[float, float]:
    """Logarithm of the share that misses over the share that may, of the worst objective."""
    asked = arrivals(point, rate_per_s * replicas, REQUESTS[replicas])
    fleet = FleetSimulation(
        asked,
        step_time(point.replica),
        EngineLimits(
            max_sequences=point.replica.max_sequences,
            step_token_budget=point.replica.step_token_budget,
            kv_capacity_tokens=kv_capacity_tokens(point.replica),
        ),
        initial_replicas=replicas,
    )
    fleet.advance(float(asked.t_s[-1]))
    seen = slice(*(int(share * len(asked)) for share in SEEN))
    found = []
    for objective in point.objectives:
        values = latencies_s(fleet.results(), asked, objective.metric)[seen]
        late = np.nan_to_num(values, nan=np.inf) > objective.target_s
        if objective.metric is Metric.TIME_PER_OUTPUT_TOKEN:
            late = late[np.isfinite(values)]
        share = float(late.mean()) if late.size else 1.0
        batches = [float(batch.mean()) for batch in np.array_split(late, BATCHES) if batch.size]
        error = statistics.stdev(batches) / math.sqrt(BATCHES) / (share + FEWEST)
        allowed = 1.0 - objective.percentile / 100.0
        found.append((math.log((share + FEWEST) / (allowed + FEWEST)), error))
    return max(found)


def latencies_s(results: RequestResults, asked: Arrivals, metric: Metric) -> NDArray[np.float64]:
    """One latency of all requests; not a number for those that have none yet."""
    if metric is Metric.TIME_TO_FIRST_TOKEN:
        return results.ttft_s
    if metric is Metric.TIME_PER_OUTPUT_TOKEN:
        return results.tpot_s
    return np.asarray(results.ttft_s + results.tpot_s * (asked.output_tokens - 1))


def simulated_ceiling(point: Point, guess_per_s: float, replicas: int) -> Simulated | None:
    """Largest rate per replica that the simulated fleet keeps; None if it keeps none. [1/s]"""
    seen = {guess_per_s: missed(point, guess_per_s, replicas)}
    low = high = guess_per_s
    stretch = 1.06
    while seen[low][0] > 0 or seen[high][0] <= 0:
        if low < LEAST_RATIO * guess_per_s or high > guess_per_s / LEAST_RATIO:
            return None
        if seen[low][0] > 0:
            low, high = low / stretch, low
            seen[low] = missed(point, low, replicas)
        else:
            low, high = high, high * stretch
            seen[high] = missed(point, high, replicas)
        stretch = min(1.5 * stretch, 2.0)
    for _ in range(4):
        if high / low < 1.01:
            break
        share = -seen[low][0] / (seen[high][0] - seen[low][0])
        middle = low + (high - low) * min(max(share, 0.15), 0.85)
        seen[middle] = missed(point, middle, replicas)
        low, high = (low, middle) if seen[middle][0] > 0 else (middle, high)
    rise = seen[high][0] - seen[low][0]
    slope = max(rise / math.log(high / low), 0.5)
    rate = low + (high - low) * -seen[low][0] / rise
    return Simulated(rate_per_s=rate, error=seen[low][1] / slope)


def main() -> None:
    """Print the errors by pool size, and the worst points."""
    parser = argparse.ArgumentParser(description="the ceiling against simulation")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    chosen = selected(asked.points, asked.random)
    began_s = time.perf_counter()
    rows: list[tuple[int, float, float, str]] = []
    for one, replicas in itertools.product(chosen, REQUESTS):
        question = Question(
            replica=one.replica,
            workload=one.workload,
            objectives=one.objectives,
            replicas=replicas,
        )
        answer = ceilings([question])[0]
        if not answer.is_attainable:
            continue
        seen = simulated_ceiling(one, answer.rate_per_s, replicas)
        if seen is None:
            continue
        error = answer.rate_per_s / seen.rate_per_s - 1.0
        rows.append((replicas, error, seen.error, f"{one.name} R={replicas} {answer.limit}"))
        if asked.verbose:
            print(f"{error:+.3f} (+-{seen.error:.3f}) {answer.rate_per_s:.3f} {rows[-1][3]}")
    report(rows, time.perf_counter() - began_s)


def selected(count: int, seed: int | None) -> list[Point]:
    """Points of the grid, evenly spread over it, or drawn ones."""
    if seed is not None:
        return list(itertools.islice(drawn(seed), count))
    everything = grid()
    places = np.linspace(0, len(everything) - 1, min(count, len(everything))).astype(int)
    return [everything[place] for place in places]


def report(rows: Sequence[tuple[int, float, float, str]], took_s: float) -> None:
    """Print a line for each pool size, one for all, and the worst."""
    print(f"{len(rows)} points in {took_s:.0f} s; bars: median 4 %, all within 10 %")
    for replicas in (*REQUESTS, 0):
        some = [row for row in rows if replicas in (row[0], 0)]
        sizes = sorted(abs(error) for _, error, _, _ in some)
        if not sizes:
            continue
        name = f"R = {replicas}" if replicas else "all"
        inside = sum(size <= MOST_ERROR for size in sizes) / len(sizes)
        print(
            f"{name:7} median {statistics.median(sizes):6.1%}  "
            f"p90 {sizes[int(0.9 * len(sizes))]:6.1%}  largest {sizes[-1]:6.1%}  "
            f"within 10 % {inside:5.1%}  "
            f"bias {statistics.median(error for _, error, _, _ in some):+.1%}  "
            f"standard error of the simulation {statistics.median(row[2] for row in some):.1%}"
        )
    for _, error, _, name in sorted(rows, key=lambda row: -abs(row[1]))[:5]:
        print(f"worst {error:+.0%} {name}")


if __name__ == "__main__":
    main()
