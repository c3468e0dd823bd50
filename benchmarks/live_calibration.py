"""
Calibration from what an autoscaler sees: counters scraped from a real engine under rising load.

    python benchmarks/live_calibration.py [SCRAPES]

SCRAPES has the columns of `real_vllm/scrapes.csv` (default: in `../shared/data`). Rates up to
3 requests/s teach, in order of time; then the ceiling for p95 TTFT <= 0.5 s and p95 TPOT <= 0.09 s
has to lie between the measured rates 3 and 4, and the residence time at each rate within 10 %.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fleetline.model.architecture import Architecture
from fleetline.model.calibration import CalibrationState, Sample, apply, prior, update
from fleetline.model.ceiling import ceiling
from fleetline.model.hardware import Accelerator, Efficiency, Precision
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import operate
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload

DEFAULT = Path(__file__).resolve().parent.parent.parent / "shared/data/real_vllm/scrapes.csv"
WINDOW_S = 25.0
"""Shortest window; longer ones until enough requests have finished. [s]"""
LEAST_REQUESTS = 20
SETTLING_S = 8.0
"""Start of each rate that is left out: the batch still fills. [s]"""
HIGHEST_RATE_PER_S = 3.0
"""Rates up to this one teach; the next ones are what has to be foreseen. [1/s]"""
USUAL_REQUESTS = 60.0
"""Requests whose weight the lengths of all teaching rates have beside those of one. [requests]"""
UNKNOWN_HARDWARE = 3.0
"""How much wider than for a known accelerator the prior is."""

TINY = Architecture(
    name="tiny",
    layers=8,
    hidden_size=512,
    parameters=30.9e6,
    active_parameters=30.9e6,
    attention_heads=8,
    head_size=64,
    vocabulary_size=8192,
    kv_values_per_token=2 * 2 * 64 * 8,
    kv_heads=2,
)
"""The model of the recorded runs: 8 layers, hidden 512, feed-forward 1408, vocabulary 8192."""

CORE = Accelerator(
    name="one processor core",
    vendor="cpu",
    memory_bytes=1.3e9,
    bandwidth_bytes_per_s=200e9,
    bf16_flop_per_s=160e9,
    efficiency=Efficiency(compute=0.72, layer_s=3e-3, sequence_s=0.3e-3),
)
"""Rough figures of an AVX2 core: 80 Gflop/s in float32, weights in its caches, and 3 ms a layer in
eager mode."""

REPLICA = Replica(
    architecture=TINY,
    accelerator=CORE,
    weight_precision=Precision.FP32,
    kv_precision=Precision.FP32,
    max_sequences=32,
    step_token_budget=512,
)

OBJECTIVES = (
    Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=0.5),
    Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=0.09),
)

Row = dict[str, float]


def read(path: Path) -> list[Row]:
    """Rows of the scrapes, all numbers."""
    with path.open(encoding="utf-8") as file:
        return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def by_rate(rows: Sequence[Row]) -> Iterator[tuple[float, list[Row]]]:
    """Scrapes of each rate in order, without the time in which the batch fills."""
    for rate in dict.fromkeys(row["rate_rps"] for row in rows):
        chosen = [row for row in rows if row["rate_rps"] == rate]
        yield rate, [row for row in chosen if row["t_s"] >= chosen[0]["t_s"] + SETTLING_S]


def windows(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Consecutive windows that hold enough requests."""
    start = 0
    for end in range(1, len(rows)):
        long_enough = rows[end]["t_s"] - rows[start]["t_s"] >= WINDOW_S
        if long_enough and grown(rows[start : end + 1], "request_success_total") >= LEAST_REQUESTS:
            yield list(rows[start : end + 1])
            start = end


def grown(rows: Sequence[Row], name: str) -> float:
    """Increase of a counter over the rows."""
    return rows[-1][name] - rows[0][name]


def mean(rows: Sequence[Row], name: str) -> float:
    """Mean of a histogram's observations over the rows."""
    return grown(rows, f"{name}_sum") / max(grown(rows, f"{name}_count"), 1.0)


def sample_of(rows: Sequence[Row], at_s: float) -> tuple[Sample, Workload]:
    """What one window shows: a sample, and the lengths of its requests."""
    elapsed_s = rows[-1]["t_s"] - rows[0]["t_s"]
    requests = grown(rows, "request_success_total")
    prompt = grown(rows, "prompt_tokens_total") / grown(rows, "time_to_first_token_seconds_count")
    answered = grown(rows, "e2e_request_latency_seconds_count")
    output = grown(rows, "inter_token_latency_seconds_count") / answered + 1.0
    inside = rows[1:]
    return Sample(
        at_s=at_s,
        arrival_rate_per_s=grown(rows, "time_to_first_token_seconds_count") / elapsed_s,
        running_requests=sum(row["num_requests_running"] for row in inside) / len(inside),
        waiting_requests=sum(row["num_requests_waiting"] for row in inside) / len(inside),
        time_to_first_token_s=mean(rows, "time_to_first_token_seconds"),
        inter_token_latency_s=mean(rows, "inter_token_latency_seconds"),
        end_to_end_s=mean(rows, "e2e_request_latency_seconds"),
        requests=requests,
    ), Workload(lengths=TokenLengths.evenly(prompt, output))


def learn(rows: Sequence[Row]) -> tuple[CalibrationState, Workload]:
    """Feed every window of the teaching rates to the calibration, in order of time."""
    state, at_s = prior(REPLICA, spread_factor=UNKNOWN_HARDWARE), 0.0
    workload = Workload(lengths=TokenLengths.evenly(72.0, 72.0))
    for rate, chosen in by_rate(rows):
        if rate > HIGHEST_RATE_PER_S:
            break
        for window in windows(chosen):
            at_s += window[-1]["t_s"] - window[0]["t_s"]
            sample, workload = sample_of(window, at_s)
            state = update(state, sample, REPLICA, workload)
            print(
                f"rate {rate:g}: running {sample.running_requests:5.2f} "
                f"ITL {sample.inter_token_latency_s:.4f} s "
                f"TTFT {sample.time_to_first_token_s:.3f} s"
                f" -> {', '.join(f'{k} {v:.2f}' for k, v in state.factors.items())}"
                f" {state.refused_because}"
            )
    return state, workload


def lengths_at(rows: Sequence[Row], chosen: Sequence[Row]) -> Workload:
    """Lengths at one rate, drawn to those of all teaching rates: its window holds few requests."""
    taught = [some for rate, some in by_rate(rows) if rate <= HIGHEST_RATE_PER_S]
    prompts = [grown(some, "prompt_tokens_total") for some in (*taught, chosen)]
    begun = [grown(some, "time_to_first_token_seconds_count") for some in (*taught, chosen)]
    gaps = [grown(some, "inter_token_latency_seconds_count") for some in (*taught, chosen)]
    ended = [grown(some, "e2e_request_latency_seconds_count") for some in (*taught, chosen)]

    def drawn(tokens: Sequence[float], requests: Sequence[float]) -> float:
        usual = sum(tokens[:-1]) / sum(requests[:-1])
        return (tokens[-1] + USUAL_REQUESTS * usual) / (requests[-1] + USUAL_REQUESTS)

    return Workload(lengths=TokenLengths.evenly(drawn(prompts, begun), drawn(gaps, ended) + 1.0))


def main() -> None:
    """Print what was learned and what it foresees beside the bars."""
    rows = read(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
    state, _ = learn(rows)
    learned = apply(REPLICA, state)
    for rate, chosen in by_rate(rows):
        sample, workload = sample_of(chosen, 0.0)[0], lengths_at(rows, chosen)
        point = operate(learned, workload, sample.arrival_rate_per_s)
        seen_s = sample.end_to_end_s or 0.0
        print(
            f"rate {rate:g} (came {sample.arrival_rate_per_s:.2f}): "
            f"W {point.residence_time_s:.2f} s, measured {seen_s:.2f} s, "
            f"{point.residence_time_s / seen_s - 1:+.1%} (bar 10 % up to 3)"
        )
    last = [some for rate, some in by_rate(rows) if rate <= HIGHEST_RATE_PER_S][-1]
    found = ceiling(learned, lengths_at(rows, last), OBJECTIVES)
    print(
        f"ceiling {found.rate_per_s:.2f} requests/s ({found.limit}), bar: between 3 and 4; "
        f"capacity {found.capacity_per_s:.2f} requests/s"
    )


if __name__ == "__main__":
    main()
