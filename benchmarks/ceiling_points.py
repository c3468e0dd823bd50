"""
Points at which the ceiling is compared with simulation: a fixed grid, and random ones without end.

Drawn points vary slots, percentiles and the dispersion of arrivals as well.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetline.adapters.catalog import load_catalog
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.roofline import step_time
from fleetline.model.workload import TokenLengths, Workload

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
