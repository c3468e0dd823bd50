"""Histograms as Prometheus keeps them: a value belongs to the first bucket that is not below it."""

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.series import step_at_s
from sim_cluster.serving.compiled.state import Floats, Ints, Record


@compiled
def bucket_of(bounds: Floats, value: float) -> int:
    """Index of the bucket of a value; the number of bounds if it exceeds all."""
    low, high = 0, bounds.size
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def observe(counts: Ints, slot: int, bounds: Floats, value: float, times: int) -> None:
    """Count a value so many times."""
    counts[slot, bucket_of(bounds, value)] += times


@compiled
def observe_run(
    counts: Ints, slot: int, bounds: Floats, one: Record, steps: int, sequences: int
) -> None:
    """Count the times of the first so many steps of a run, once for each sequence."""
    begin = 0
    bucket = bucket_of(bounds, step_at_s(one, 0))
    last = bucket_of(bounds, step_at_s(one, steps - 1))
    while bucket < last:
        low, high = begin, steps
        while low < high:
            middle = (low + high) >> 1
            if step_at_s(one, middle) <= bounds[bucket]:
                low = middle + 1
            else:
                high = middle
        counts[slot, bucket] += (low - begin) * sequences
        begin = low
        bucket += 1
    counts[slot, bucket] += (steps - begin) * sequences
