"""
The traces that policies are replayed on: each cut and scaled, and what serves it.

Traces are public; image requests have service times, and become text of the same duration.
"""

import csv
import dataclasses
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.replay.drawing import read_lengths
from fleetline.replay.scenario import Scenario, default_max_replicas, first_replicas
from fleetline.replay.traces import Trace, TraceOptions, read_traces
from sim_cluster.serving.startup import StartupTime

ROOT = Path(__file__).parents[1]
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
