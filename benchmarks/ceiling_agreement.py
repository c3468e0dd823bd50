"""
The ceiling against iteration-level simulation, alone and pooled.

    python benchmarks/ceiling_agreement.py [--points N] [--verbose]

On a grid of accelerators, models, workloads, budgets and objectives, for one replica and for
4, 16 and 64 behind a least-loaded router: the largest rate per replica at which the simulated
fleet keeps every percentile, beside the model's. Bars: median 4 %, all within 10 %.
"""

import itertools
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetline.adapters.catalog import load_catalog
from fleetline.model.ceiling import Ceiling, ceiling
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.roofline import step_time
from fleetline.model.workload import TokenLengths, Workload
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.limits import EngineLimits

POOLS = (1, 4, 16, 64)
BISECTIONS = 9
MOST_ERROR = 0.1
WARM_UP = 0.25
"""Share of the requests that are left out at the start, while the fleet fills."""

DEPLOYMENTS = (
    ("llama-3.1-8b", "H100-SXM", 1),
    ("llama-3.1-8b", "L40S", 1),
    ("llama-3.1-70b", "H100-SXM", 4),
    ("qwen3-30b-a3b", "H200", 1),
    ("qwen2.5-14b", "A100-SXM-80GB", 1),
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


def grid() -> list[Point]:
    """All points, in an order that mixes the axes."""
    catalog = load_catalog()
    points = []
    for number, (deployment, lengths, factor) in enumerate(
        itertools.product(DEPLOYMENTS, LENGTHS, TIGHTNESS)
    ):
        model, accelerator, tensor = deployment
        kind, *sizes = lengths
        prompts, outputs = draw(number, *sizes)
        replica = Replica(
            architecture=catalog.architecture(model),
            accelerator=catalog.accelerator(accelerator),
            tensor_parallel=tensor,
            step_token_budget=(8192, 2048)[number % 2],
        )
        workload = Workload(
            lengths=TokenLengths.of(prompts.astype(np.float64), outputs.astype(np.float64))
        )
        alone = step_time(replica)
        first_s = alone.request_s + alone.step_s(
            sequences=0, context_tokens=0, prefill_tokens=float(np.quantile(prompts, 0.95))
        )
        token_s = alone.decode_s(1, float(prompts.mean() + outputs.mean() / 2))
        objectives = (
            Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=factor * first_s + 0.1),
            Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=(1 + factor / 2) * token_s),
        )
        points.append(
            Point(
                name=f"{model} {accelerator} {kind} x{factor:g}",
                replica=replica,
                prompts=prompts,
                outputs=outputs,
                workload=workload,
                objectives=objectives,
            )
        )
    return points


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


def is_met(point: Point, rate_per_s: float, replicas: int) -> bool:
    """Whether the simulated fleet keeps every objective at that rate per replica."""
    count = min(6000 * max(1, int(replicas**0.5)) + 2000 * replicas, 90_000)
    random = np.random.default_rng(7)
    arrival_s = np.cumsum(random.exponential(1.0 / (rate_per_s * replicas), count))
    index = random.integers(0, point.prompts.size, count)
    fleet = FleetSimulation(
        Arrivals.of(arrival_s, point.prompts[index], point.outputs[index]),
        step_time(point.replica),
        EngineLimits(
            max_sequences=point.replica.max_sequences,
            step_token_budget=point.replica.step_token_budget,
            kv_capacity_tokens=kv_capacity_tokens(point.replica),
        ),
        initial_replicas=replicas,
    )
    fleet.advance(float(arrival_s[-1]))
    results = fleet.results()
    seen = slice(int(WARM_UP * count), int(0.97 * count))
    unfinished = {
        Metric.TIME_TO_FIRST_TOKEN: results.ttft_s,
        Metric.TIME_PER_OUTPUT_TOKEN: results.tpot_s,
    }
    for objective in point.objectives:
        values = unfinished[objective.metric][seen]
        if objective.metric is Metric.TIME_PER_OUTPUT_TOKEN:
            values = values[np.isfinite(values)]
        inside = np.mean(np.nan_to_num(values, nan=np.inf) <= objective.target_s)
        if inside < objective.percentile / 100:
            return False
    return True


def simulated_ceiling(point: Point, guess_per_s: float, replicas: int) -> float:
    """Largest rate per replica that the simulated fleet keeps, by bisection. [1/s]"""
    low, high = 0.4 * guess_per_s, 1.6 * guess_per_s
    while not is_met(point, low, replicas):
        low, high = low / 2, low
    while is_met(point, high, replicas):
        low, high = high, high * 1.5
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_met(point, middle, replicas) else (low, middle)
    return low


def main() -> None:
    """Print the errors by pool size, and the worst points."""
    count = int(sys.argv[sys.argv.index("--points") + 1]) if "--points" in sys.argv else 10**6
    points = grid()
    if count < len(points):
        points = [points[i] for i in np.linspace(0, len(points) - 1, count).astype(int)]
    began_s = time.perf_counter()
    errors: dict[int, list[tuple[float, str]]] = {replicas: [] for replicas in POOLS}
    for point, replicas in itertools.product(points, POOLS):
        answer: Ceiling = ceiling(
            point.replica, point.workload, point.objectives, replicas=replicas
        )
        if not answer.is_attainable:
            continue
        seen = simulated_ceiling(point, answer.rate_per_s, replicas)
        error = answer.rate_per_s / seen - 1.0
        errors[replicas].append((error, f"{point.name} R={replicas} {answer.limit}"))
        if "--verbose" in sys.argv:
            print(
                f"{error:+.3f} {answer.rate_per_s:.3f} {seen:.3f} {errors[replicas][-1][1]}",
                flush=True,
            )
    everything = [one for some in errors.values() for one in some]
    took_s = time.perf_counter() - began_s
    print(f"{len(everything)} points in {took_s:.0f} s; bars: median 4 %, all within 10 %")
    for replicas, some in [*errors.items(), (0, everything)]:
        sizes = sorted(abs(error) for error, _ in some)
        name = f"R = {replicas}" if replicas else "all"
        bias = statistics.median(error for error, _ in some)
        inside = sum(size <= MOST_ERROR for size in sizes) / len(sizes)
        print(
            f"{name:7} median {statistics.median(sizes):6.1%}  "
            f"p90 {sizes[int(0.9 * len(sizes))]:6.1%}  largest {sizes[-1]:6.1%}  "
            f"within 10 % {inside:5.0%}  bias {bias:+.1%}"
        )
    for error, name in sorted(everything, key=lambda one: -abs(one[0]))[:5]:
        print(f"worst {error:+.0%} {name}")


if __name__ == "__main__":
    main()
