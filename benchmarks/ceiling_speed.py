"""
Time of a ceiling: one fleet at a time, and 10,000 at once.

    python benchmarks/ceiling_speed.py

Bars: median of single solves <= 1 ms on one core, 10,000 in <= 5 s. Processor time, so that
other programs on the machine do not count. Every question is asked once; what does not depend on
the question (the replica's coefficients, a workload's kinds) is kept. Bursts cost array operations
that Poisson arrivals do without, so single solves are timed with both.
"""

import statistics
import time
from collections.abc import Sequence

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.model.ceiling import Question, ceiling, ceilings
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload

SINGLES = 300
MANY = 10_000
WARM = 100
"""Questions asked before, so that nothing is loaded while time is taken."""
DISPERSION = 2.5


def questions(count: int, dispersion: float = 1.0) -> list[Question]:
    """Fleets that differ in model, accelerator, lengths, objectives and size."""
    catalog, random = load_catalog(), np.random.default_rng(1)
    replicas = [
        Replica(
            architecture=catalog.architecture(model),
            accelerator=catalog.accelerator(accelerator),
            tensor_parallel=tensor,
        )
        for model, accelerator, tensor in (
            ("llama-3.1-8b", "H100-SXM", 1),
            ("llama-3.1-70b", "H100-SXM", 4),
            ("qwen3-30b-a3b", "H200", 1),
            ("llama-3.1-8b", "L40S", 1),
        )
    ]
    workloads = [
        Workload(
            lengths=TokenLengths.of(
                1.0 + random.lognormal(np.log(prompt), 0.8, 2000),
                1.0 + random.lognormal(np.log(output), 0.7, 2000),
            ),
            dispersion=dispersion,
        )
        for prompt, output in random.uniform((100, 50), (3000, 600), (50, 2))
    ]
    return [
        Question(
            replica=replicas[number % len(replicas)],
            workload=workloads[number % len(workloads)],
            objectives=(
                Objective(
                    metric=Metric.TIME_TO_FIRST_TOKEN, target_s=float(random.uniform(0.3, 3.0))
                ),
                Objective(
                    metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=float(random.uniform(0.04, 0.2))
                ),
            ),
            replicas=int(random.integers(1, 65)),
        )
        for number in range(count)
    ]


def single_solves_s(asked: Sequence[Question]) -> list[float]:
    """Processor time of each of them, asked alone. [s]"""
    times_s = []
    for one in asked:
        began_s = time.process_time()
        ceiling(one.replica, one.workload, one.objectives, replicas=one.replicas)
        times_s.append(time.process_time() - began_s)
    return times_s


def main() -> None:
    """Print the times beside their bars."""
    asked = questions(MANY)
    single_solves_s(asked[-WARM:])
    time_ms = 1e3 * statistics.median(single_solves_s(asked[:SINGLES]))
    print(f"one ceiling: median {time_ms:.2f} ms (bar 1 ms)")
    bursty = questions(SINGLES + WARM, DISPERSION)
    single_solves_s(bursty[-WARM:])
    time_ms = 1e3 * statistics.median(single_solves_s(bursty[:SINGLES]))
    print(f"one ceiling under bursts (dispersion {DISPERSION:g}): median {time_ms:.2f} ms")
    began_s = time.process_time()
    found = ceilings(asked)
    took_s = time.process_time() - began_s
    print(f"{MANY} ceilings at once: {took_s:.2f} s (bar 5 s)")
    print(f"attainable: {sum(one.is_attainable for one in found)}")


if __name__ == "__main__":
    main()
