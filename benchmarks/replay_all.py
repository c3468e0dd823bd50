"""
Every policy on every trace: ours beside peers at their defaults and at their best in hindsight.

    python benchmarks/replay_all.py [--traces DIR] [--only NAME] [--processes 2]

Writes operator/docs/replay_results.md and one HTML page, and prints ours over the best peer in
hindsight (bar: geometric mean <= 0.85, never above 1.05) and over the clairvoyant (<= 1.35), at
99 % of windows or more.
"""

import argparse
import csv
import dataclasses
import gzip
import math
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.entrypoints.replay_progress import Progress
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.replay.answer import Answer, answer, parse_policies
from fleetline.replay.drawing import read_lengths
from fleetline.replay.hindsight import WINDOWS_TARGET, best
from fleetline.replay.html import page
from fleetline.replay.pool import open_runs
from fleetline.replay.scenario import Scenario, default_max_replicas, first_replicas
from fleetline.replay.tasks import OURS, Outcome
from fleetline.replay.traces import Trace, TraceOptions, read_traces
from sim_cluster.serving.startup import StartupTime

ROOT = Path(__file__).parents[1]
TRACES = ROOT.parent / "shared" / "data" / "traces"
RESULTS = ROOT / "operator" / "docs" / "replay_results.md"
PAGE = ROOT / "build" / "replay_all.html"

BAR_MEAN, BAR_WORST, BAR_CLAIRVOYANT, BAR_MINUTES = 0.85, 1.05, 1.35, 30.0

HOUR_S = 3600.0
TOKENS_PER_SECOND = 45.0
"""Image generation has service times, not tokens: an answer of as many tokens as one request alone
would be given in that time by the replica of the case, which serves four at a time."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One trace, cut and scaled to a fleet of 3 to 15 replicas, and what serves it."""

    name: str
    file: str
    series: str = ""
    model: str
    accelerator: str
    tensor_parallel: int = 1
    first_token_s: float
    output_token_s: float
    startup_s: float
    scale: float
    start_h: float = 0.0
    end_h: float | None = None
    dispersion: float = 1.0
    lengths: tuple[str, str] | None = None
    max_sequences: int = 256


LENGTHS_2024 = "azure2024_length_cdf_digitised.csv"
LENGTHS_SERVEGEN = "servegen_lengths_overall.csv"

CASES = (
    Case(
        name="chat 2023",
        file="azure2023_conv.csv.gz",
        model="llama-3.1-8b",
        accelerator="A100-SXM-80GB",
        first_token_s=1.0,
        output_token_s=0.05,
        startup_s=120,
        scale=8,
    ),
    Case(
        name="code 2023",
        file="azure2023_code.csv.gz",
        model="llama-3.1-8b",
        accelerator="H100-SXM",
        first_token_s=1.5,
        output_token_s=0.04,
        startup_s=60,
        scale=20,
    ),
    Case(
        name="long context",
        file="mooncake_conversation.csv.gz",
        model="llama-3.1-8b",
        accelerator="H100-SXM",
        first_token_s=4.0,
        output_token_s=0.06,
        startup_s=180,
        scale=3.3,
    ),
    Case(
        name="chat 2024",
        file="azure2024_rate_10min.csv.gz",
        series="conv",
        lengths=(LENGTHS_2024, "conv"),
        model="llama-3.1-70b",
        accelerator="A100-SXM-80GB",
        tensor_parallel=4,
        first_token_s=3.0,
        output_token_s=0.08,
        startup_s=300,
        scale=0.1,
        start_h=30,
        end_h=42,
        dispersion=1.4,
    ),
    Case(
        name="code 2024",
        file="azure2024_rate_10min.csv.gz",
        series="code",
        lengths=(LENGTHS_2024, "code"),
        model="llama-3.1-8b",
        accelerator="L40S",
        first_token_s=2.0,
        output_token_s=0.08,
        startup_s=300,
        scale=0.3,
        start_h=82,
        end_h=94,
        dispersion=8,
    ),
    Case(
        name="mixed tenants",
        file="servegen_m_large_rate_10min.csv.gz",
        lengths=(LENGTHS_SERVEGEN, "m-large"),
        model="llama-3.1-70b",
        accelerator="A100-SXM-80GB",
        tensor_parallel=4,
        first_token_s=3.0,
        output_token_s=0.08,
        startup_s=240,
        scale=0.03,
        start_h=12,
        end_h=24,
        dispersion=2,
    ),
    Case(
        name="reasoning",
        file="servegen_m_large_rate_10min.csv.gz",
        lengths=(LENGTHS_SERVEGEN, "deepseek-r1"),
        model="qwen3-32b",
        accelerator="H100-SXM",
        tensor_parallel=2,
        first_token_s=3.0,
        output_token_s=0.05,
        startup_s=180,
        scale=0.042,
        start_h=30,
        end_h=42,
        dispersion=1.4,
    ),
    Case(
        name="web with jumps",
        file="web_nasa_rate_1min.csv.gz",
        lengths=(LENGTHS_SERVEGEN, "m-large"),
        model="llama-3.1-8b",
        accelerator="L4",
        first_token_s=2.0,
        output_token_s=0.12,
        startup_s=30,
        scale=4.5,
        start_h=102,
        end_h=114,
        dispersion=1.4,
    ),
    Case(
        name="images",
        file="alibaba_gentd26_image_requests.csv.gz",
        model="llama-3.1-8b",
        accelerator="L40S",
        max_sequences=4,
        first_token_s=10.0,
        output_token_s=0.06,
        startup_s=120,
        scale=15,
        start_h=408,
        end_h=420,
    ),
)


def read_case(case: Case, folder: Path) -> Scenario:
    """Make the question of a case."""
    catalog = load_catalog()
    options = TraceOptions(
        scale=case.scale,
        dispersion=case.dispersion,
        lengths=read_lengths(folder / case.lengths[0], case.lengths[1]) if case.lengths else None,
        start_s=case.start_h * HOUR_S,
        end_s=None if case.end_h is None else case.end_h * HOUR_S,
    )
    path = folder / case.file
    found = [images(path, options)] if "image" in case.file else read_traces(path, options)
    trace = next(one for one in found if one.name.endswith(case.series))
    replica = Replica(
        architecture=catalog.architecture(case.model),
        accelerator=catalog.accelerator(case.accelerator),
        tensor_parallel=case.tensor_parallel,
        weight_precision=catalog.weight_precision(case.model),
        max_sequences=case.max_sequences,
    )
    objectives = (
        Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=case.first_token_s),
        Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=case.output_token_s),
    )
    dispersion = case.dispersion
    most = default_max_replicas(trace, replica, objectives, dispersion=dispersion)
    return Scenario(
        trace=dataclasses.replace(trace, name=case.name),
        replica=replica,
        objectives=objectives,
        startup=StartupTime.spread(case.startup_s, 1.25),
        startup_s=case.startup_s * 1.25,
        dispersion=dispersion,
        max_replicas=most,
        initial_replicas=first_replicas(
            trace, replica, objectives, dispersion=dispersion, max_replicas=most
        ),
        price_usd_per_hour=catalog.price_usd_per_hour(case.accelerator),
    )


def images(path: Path, options: TraceOptions) -> Trace:
    """Read image requests as text requests with the same service time."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [(float(one["t_s"]), float(one["exec_time_s"])) for one in csv.DictReader(lines)]
    times, service_s = (np.array(one) for one in zip(*sorted(rows), strict=True))
    scratch = ROOT / "build" / f"images-{os.getpid()}.csv"
    scratch.parent.mkdir(exist_ok=True)
    rows_out = (
        f"{t},100,{max(1, round(service * TOKENS_PER_SECOND))}"
        for t, service in zip(times, service_s, strict=True)
    )
    scratch.write_text("t_s,prompt_tokens,output_tokens\n" + "\n".join(rows_out), "utf-8")
    try:
        return read_traces(scratch, options)[0]
    finally:
        scratch.unlink()


def hindsight(one: Answer) -> Outcome:
    """Return the best peer: the cheapest that met the windows target, else the most windows."""
    return best(outcome for outcome in one.policies if outcome.task.name != OURS)


def report(answers: list[Answer], minutes: float) -> str:
    """Write the table that stands in the documents."""
    today = datetime.now(tz=UTC).date().isoformat()
    lines = [
        "# Replay: every policy on every trace",
        "",
        f"Made on {today} by `python benchmarks/replay_all.py` in {minutes:.0f} minutes; the same",
        "command makes it anew. Peers are implemented from their published algorithms",
        "(`operator/fleetline/replay/baselines`), at their defaults and, as NAME@best, at the",
        "threshold that in hindsight costs least on this very trace with 99 % of windows met; ours",
        "has one setting for all traces. Hours are GPU-hours, from creation to end of drain. A",
        "window of five minutes is met if the 95th percentiles of TTFT and TPOT held for what",
        "arrived in it.",
        "Traces are cut to at most 12 hours and scaled to fleets of 3 to 15 replicas; image",
        "requests have service times, not tokens, and are taken as text of the same duration.",
        "Weak points of the comparison: peers know the ceiling of one replica, and Dynamo and",
        "WVA's queueing model the true step time, which they would have to learn; that flatters",
        "them. The simulator shares the step time with our model, which flatters ours. The best of",
        "sixteen peers at up to ten settings was chosen with the trace known. A trace of one hour",
        "has 12 windows, so that one missed window misses the target.",
        "",
        "| trace | ours, windows | hours | best peer | windows | hours | ratio | bound | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_summary(one) for one in answers]
    for one in answers:
        lines += ["", *_details(one)]
    return "\n".join(lines) + "\n"


def _ours(one: Answer) -> Outcome:
    return next(outcome for outcome in one.policies if outcome.task.name == OURS)


def _summary(one: Answer) -> str:
    ours, peer, bound = _ours(one).score, hindsight(one), one.clairvoyant
    bound_hours = math.nan if bound is None else bound.score.gpu_hours
    return (
        f"| {one.scenario.trace.name} | {ours.windows_met:.3f} | {ours.gpu_hours:.1f} "
        f"| {peer.task.name} | {peer.score.windows_met:.3f} | {peer.score.gpu_hours:.1f} "
        f"| {ours.gpu_hours / peer.score.gpu_hours:.2f} | {bound_hours:.1f} "
        f"| {ours.gpu_hours / bound_hours:.2f} |"
    )


def _details(one: Answer) -> list[str]:
    scenario = one.scenario
    replica = scenario.replica
    objectives = ", ".join(str(objective) for objective in scenario.objectives)
    everyone = [*one.policies, *([one.clairvoyant] if one.clairvoyant else [])]
    ranked = sorted(
        everyone,
        key=lambda o: (o.score.windows_met < WINDOWS_TARGET, o.score.gpu_hours),
    )
    return [
        f"## {scenario.trace.name}",
        "",
        (
            f"{len(scenario.trace.arrivals):,} requests in "
            f"{scenario.trace.duration_s / HOUR_S:.1f} h; {replica.architecture.name} on "
            f"{replica.accelerators} x {replica.accelerator.name}; {objectives}; start-up up to "
            f"{scenario.startup_s:g} s; fluid bound {one.fluid_gpu_hours:.1f} GPU-hours."
        ),
        "",
        "| policy | windows met | goodput | GPU-hours | changes | worst drain, s |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {o.task.name} | {o.score.windows_met:.3f} | {o.score.goodput:.4f} "
            f"| {o.score.gpu_hours:.1f} | {o.score.scale_actions} | {o.score.worst_drain_s:.0f} |"
            for o in ranked
        ),
    ]


def verdict(answers: list[Answer], minutes: float) -> bool:
    """Print the numbers beside their bars; tell whether all of them hold."""
    peers = [_ours(one).score.gpu_hours / hindsight(one).score.gpu_hours for one in answers]
    bounds = [
        _ours(one).score.gpu_hours / one.clairvoyant.score.gpu_hours
        for one in answers
        if one.clairvoyant is not None
    ]
    windows = min(_ours(one).score.windows_met for one in answers)
    checks = (
        ("ours / best peer, geometric mean", _mean(peers), BAR_MEAN),
        ("ours / best peer, worst", max(peers), BAR_WORST),
        ("ours / clairvoyant, geometric mean", _mean(bounds), BAR_CLAIRVOYANT),
        ("minutes", minutes, BAR_MINUTES),
    )
    for name, value, bar in checks:
        print(f"{name}: {value:.3f} (bar {bar:g}) {'ok' if value <= bar else 'MISSED'}")
    enough = windows >= WINDOWS_TARGET
    print(
        f"windows met, worst: {windows:.3f} (bar {WINDOWS_TARGET}) {'ok' if enough else 'MISSED'}"
    )
    return enough and all(value <= bar for _, value, bar in checks)


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--only", help="names of cases, with commas")
    parser.add_argument("--policy", default="all,all@best")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    chosen = [one for one in CASES if not options.only or one.name in options.only.split(",")]
    request = parse_policies(options.policy)
    answers = []
    for case in chosen:
        scenario = read_case(case, options.traces)
        with (
            Progress(case.name) as progress,
            open_runs(scenario, progress, processes=options.processes) as perform,
        ):
            answers.append(answer(scenario, request, perform))
        print(_summary(answers[-1]), flush=True)
        minutes = (time.monotonic() - began) / 60.0
        if not options.only:
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(report(answers, minutes), "utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(answers), "utf-8")
    sys.exit(0 if verdict(answers, minutes) else 1)


if __name__ == "__main__":
    main()
