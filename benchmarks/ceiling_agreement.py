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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetline.adapters.catalog import load_catalog
from fleetline.model.ceiling import Question, ceilings
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.roofline import step_time
from fleetline.model.workload import TokenLengths, Workload
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

DEPLOYMENTS = (
    ("llama-3.1-8b", "H100-SXM", 1),
    ("llama-3.1-8b", "L40S", 1),
    ("llama-3.1-70b", "H100-SXM", 4),
    ("qwen3-30b-a3b", "H200", 1),
    ("qwen2.5-14b", "A100-SXM-80GB", 1),
)
MORE_DEPLOYMENTS = (
    ("llama-3.1-8b", "L4", 1),
    ("llama-3.1-70b", "H100-SXM", 8),
    ("llama-3.1-70b", "H200", 2),
    ("qwen2.5-14b", "H100-SXM", 1),
    ("qwen3-32b", "H100-SXM", 2),
    ("qwen3-32b", "B200", 1),
    ("llama-3.1-8b", "A100-SXM-80GB", 1),
    ("gpt-oss-20b", "H100-SXM", 1),
)
LENGTHS = (
    ("short chat", 200, 1.0, 200, 0.8),
    ("chat", 1000, 1.0, 250, 0.8),
    ("documents", 4000, 0.7, 150, 0.8),
    ("code", 2000, 1.0, 25, 1.2),
    ("reasoning", 400, 1.0, 1500, 0.7),
)
"""Name, mean and coefficient of variation of prompts and of outputs, log-normal. [tokens]"""

TIGHTNESS = (2.5, 6.0)
"""Objectives as multiples of what a request alone sees: TTFT by this, TPOT by half of it plus 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of the grid."""

    name: str
    replica: Replica
    prompts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    workload: Workload
    objectives: tuple[Objective, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A ceiling found by simulation, with its standard error relative to it."""

    rate_per_s: float
    error: float


def grid() -> list[Point]:
    """All points of the fixed grid, in an order that mixes the axes."""
    points = []
    for number, (deployment, (kind, *sizes), factor) in enumerate(
        itertools.product(DEPLOYMENTS, LENGTHS, TIGHTNESS)
    ):
        wanted = [(Metric.TIME_TO_FIRST_TOKEN, factor), (Metric.TIME_PER_OUTPUT_TOKEN, factor)]
        points.append(
            point(kind, deployment, sizes, number, wanted, limits=(256, (8192, 2048)[number % 2]))
        )
    return points


def drawn(seed: int) -> Iterator[Point]:
    """Draw points without end."""
    random = np.random.default_rng(seed)
    places = DEPLOYMENTS + MORE_DEPLOYMENTS
    first, token, whole = (
        Metric.TIME_TO_FIRST_TOKEN,
        Metric.TIME_PER_OUTPUT_TOKEN,
        Metric.END_TO_END,
    )
    while True:
        sizes = (
            math.exp(random.uniform(math.log(100), math.log(6000))),
            random.uniform(0.3, 1.3),
            math.exp(random.uniform(math.log(20), math.log(1500))),
            random.uniform(0.3, 1.2),
        )
        factors = random.uniform(2.0, 8.0, 2)
        wanted = [[(first, factors[0])], [(token, factors[1])], [(whole, factors[1])]]
        choice = random.choice(4, p=(0.1, 0.1, 0.1, 0.7))
        yield point(
            "drawn",
            places[random.integers(len(places))],
            sizes,
            int(random.integers(10**6)),
            wanted[choice] if choice < len(wanted) else [*wanted[0], *wanted[1]],
            limits=(
                int(random.choice([64, 128, 256, 256, 512])),
                int(random.choice([2048, 4096, 8192, 8192])),
            ),
            percentile=int(random.choice([90, 95, 95, 99])),
            dispersion=float(random.choice([1.0, 1.0, 1.0, 1.5, 2.5])),
        )


def point(
    kind: str,
    deployment: tuple[str, str, int],
    sizes: Sequence[float],
    seed: int,
    wanted: Sequence[tuple[Metric, float]],
    *,
    limits: tuple[int, int],
    percentile: int = 95,
    dispersion: float = 1.0,
) -> Point:
    """Build a point; objectives are given as multiples of what a request alone sees."""
    model, accelerator, tensor = deployment
    catalog = load_catalog()
    prompts, outputs = draw(seed, *sizes)
    replica = Replica(
        architecture=catalog.architecture(model),
        accelerator=catalog.accelerator(accelerator),
        tensor_parallel=tensor,
        max_sequences=limits[0],
        step_token_budget=limits[1],
    )
    alone = step_time(replica)
    first_s = alone.request_s + alone.step_s(
        sequences=0, context_tokens=0, prefill_tokens=float(np.quantile(prompts, 0.95))
    )
    token_s = alone.decode_s(1, float(prompts.mean() + outputs.mean() / 2))
    longest = float(np.quantile(outputs, 0.95))

    def target_s(metric: Metric, factor: float) -> float:
        first, token = factor * first_s + 0.1, (1 + factor / 2) * token_s
        if metric is Metric.TIME_TO_FIRST_TOKEN:
            return first
        return token if metric is Metric.TIME_PER_OUTPUT_TOKEN else first + token * longest

    told = f"{kind} {sizes[0]:.0f}/{sizes[2]:.0f} D{dispersion:g} p{percentile}"
    return Point(
        name=f"{model} {accelerator} x{tensor} {told} x{wanted[0][1]:.1f}",
        replica=replica,
        prompts=prompts,
        outputs=outputs,
        workload=Workload(
            lengths=TokenLengths.of(prompts.astype(np.float64), outputs.astype(np.float64)),
            dispersion=dispersion,
        ),
        objectives=tuple(
            Objective(metric=metric, percentile=percentile, target_s=target_s(metric, factor))
            for metric, factor in wanted
        ),
    )


def draw(
    seed: int, prompt: float, prompt_cv: float, output: float, output_cv: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw lengths, log-normal, clipped to what every replica of the grid can hold."""
    random = np.random.default_rng(seed)

    def lengths(mean: float, variation: float, most: int) -> NDArray[np.int64]:
        sigma2 = np.log1p(variation**2)
        drawn = random.lognormal(np.log(mean) - sigma2 / 2, np.sqrt(sigma2), 6000)
        return np.clip(np.rint(drawn), 1, most).astype(np.int64)

    return lengths(prompt, prompt_cv, 16_000), lengths(output, output_cv, 6_000)


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
