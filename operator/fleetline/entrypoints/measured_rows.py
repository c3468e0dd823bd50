"""Rows of a table of measurements, read as questions: which columns say what."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from fleetline.adapters.catalog import Catalog
from fleetline.errors import FleetlineError, ManifestError
from fleetline.model.fitting import Measured
from fleetline.model.hardware import Precision
from fleetline.model.kv_cache import kv_limit_requests
from fleetline.model.prediction import Case, Question, offline
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload

SLOTS: Final = {Question.RATE: 512, Question.IN_FLIGHT: 1024, Question.SATURATED: 2048}
"""Slots where no column tells them: load generators seldom hold more connections than 512, servers
start with 1,024 on large accelerators, offline runs with 2,048. [requests]"""

SPREAD: Final = 0.5
"""Lengths in an open loop vary evenly by this share around their mean unless columns tell more."""

MILLI: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row that can be answered."""

    case: Case
    deployments: float
    """Replicas that share the load of the row."""
    deployment: Hashable
    shape: Hashable


def parse(catalog: Catalog, row: Mapping[str, str]) -> Row:
    """
    Read a row as a question.

    Raises
    ------
    FleetlineError
        If a column is missing or makes no sense: `<where> must be <rule>, got <value>`.
    """
    question, load = _question(row)
    replica = _replica(catalog, row, question)
    prompt, output = _lengths(row)
    varies = question is Question.RATE or "strategy" in row
    lengths = spread_lengths(prompt, output) if varies else fixed_lengths(prompt, output)
    if not kv_limit_requests(replica, lengths) >= 1:
        # Somebody ran it: with tight memory the engine is given all of it.
        replica = replace(replica, memory_utilization=1.0)
    accelerators = _number(row, "n_gpus") or float(replica.accelerators)
    deployments = max(1.0, round(accelerators / replica.accelerators))
    if not kv_limit_requests(replica, lengths) >= 1:
        raise ManifestError(
            f"accelerators must be enough for {replica.architecture.name} and one request of "
            f"{prompt + output:.0f} tokens, got {replica.accelerators} x {replica.accelerator.name}"
        )
    case = Case(
        replica=replica,
        workload=Workload(lengths=lengths, dispersion=_dispersion(row, question)),
        question=question,
        load=load / deployments,
    )
    asked = (row.get("isl_nominal") or prompt, row.get("osl_nominal") or output)
    key = replace(replica, max_sequences=1)
    return Row(
        case=case, deployments=deployments, deployment=(key, row.get("engine", "")), shape=asked
    )


def parse_measured(catalog: Catalog, row: Mapping[str, str]) -> Measured | None:
    """Read a measured row; None if it teaches nothing."""
    try:
        asked = parse(catalog, row)
    except FleetlineError:
        return None
    token_s = _measured_s(row, ("tpot_mean_ms", "itl_mean_ms", "tpot_p50_ms", "itl_p50_ms"))
    first_s = _measured_s(row, ("ttft_mean_ms", "ttft_p50_ms"))
    if math.isnan(token_s):
        return None
    gaps = asked.case.workload.lengths.mean_output_tokens - 1.0
    rate = asked.case.load
    if asked.case.question is not Question.RATE:
        given = _number(row, "rate_rps") or _number(row, "request_rate")
        held = (0.0 if math.isnan(first_s) else first_s) + gaps * token_s
        rate = given / asked.deployments if given else asked.case.load / held
    if rate <= 0:
        return None
    return Measured(
        case=asked.case,
        deployment=asked.deployment,
        shape=asked.shape,
        arrival_rate_per_s=rate,
        time_per_output_token_s=token_s,
        time_to_first_token_s=first_s if asked.case.question is Question.RATE else math.nan,
    )


@cache
def spread_lengths(prompt_tokens: float, output_tokens: float) -> TokenLengths:
    """Lengths that vary evenly around their means; one object for equal rows."""
    return TokenLengths.evenly(prompt_tokens, output_tokens, spread_share=SPREAD)


@cache
def fixed_lengths(prompt_tokens: float, output_tokens: float) -> TokenLengths:
    """The same lengths for all requests; one object for equal rows."""
    return TokenLengths.fixed(prompt_tokens, output_tokens)


def _question(row: Mapping[str, str]) -> tuple[Question, float]:
    strategy = row.get("strategy", "")
    if strategy == "synchronous":
        return Question.IN_FLIGHT, 1.0
    if strategy == "throughput":
        return Question.IN_FLIGHT, float(SLOTS[Question.RATE])
    for column, question in (
        ("rate_rps", Question.RATE),
        ("request_rate", Question.RATE),
        ("concurrency", Question.IN_FLIGHT),
    ):
        load = _number(row, column)
        if load is not None:
            if not load > 0:
                raise ManifestError(f"{column} must be > 0, got {row[column]}")
            return question, load
    return Question.SATURATED, 0.0


def _replica(catalog: Catalog, row: Mapping[str, str], question: Question) -> Replica:
    accelerator = catalog.accelerator(_text(row, "gpu"))
    name = row.get("model") or _text(row, "model_key")
    try:
        catalog.model_key(name)
    except FleetlineError:
        if not row.get("model_key"):
            raise
        name = row["model_key"]
    weights = _precision(row, "weight_precision") or catalog.weight_precision(name)
    narrow = weights in (Precision.FP8, Precision.FP4) and row.get("engine", "") == "trtllm"
    cache_default = Precision.FP8 if narrow else Precision.BF16
    data_parallel = _count(row, "dp")
    replica = Replica(
        architecture=catalog.architecture(name),
        accelerator=accelerator,
        tensor_parallel=_count(row, "tp"),
        pipeline_parallel=_count(row, "pp"),
        data_parallel=data_parallel,
        expert_parallel=_count(row, "ep") > 1 and data_parallel > 1,
        weight_precision=weights,
        kv_precision=_precision(row, "kv_precision") or cache_default,
        max_sequences=_count(row, "max_num_seqs", default=SLOTS[question]),
        step_token_budget=_count(row, "max_num_batched_tokens", default=8192),
    )
    return offline(replica) if question is Question.SATURATED else replica


def _lengths(row: Mapping[str, str]) -> tuple[float, float]:
    found = []
    for name in ("isl", "osl"):
        columns = (f"{name}_mean", name, f"{name}_nominal")
        value = next(
            (number for column in columns if (number := _number(row, column)) is not None), None
        )
        if value is None:
            raise ManifestError(f"{name} must be given as one of {', '.join(columns)}, got none")
        if not value >= 1:
            raise ManifestError(f"{name} must be >= 1 token, got {value:g}")
        found.append(value)
    return found[0], found[1]


def _dispersion(row: Mapping[str, str], question: Question) -> float:
    """Variance over mean of arrival counts: zero at a constant rate, and in a closed loop."""
    given = _number(row, "dispersion")
    if given is not None:
        if not given >= 0:
            raise ManifestError(f"dispersion must be >= 0, got {given:g}")
        return given
    if question is not Question.RATE:
        return 0.0
    told = f"{row.get('strategy', '')} {row.get('note', '')}"
    return 0.0 if "constant" in told or "synchronous" in told else 1.0


def _text(row: Mapping[str, str], column: str) -> str:
    if not row.get(column):
        raise ManifestError(f"{column} must be given, got nothing")
    return row[column]


def _number(row: Mapping[str, str], column: str) -> float | None:
    text = row.get(column, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ManifestError(f"{column} must be a number, got {text!r}") from None
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise ManifestError(f"{column} must be finite, got {text}")
    return value


def _count(row: Mapping[str, str], column: str, *, default: int = 1) -> int:
    value = _number(row, column)
    if value is None:
        return default
    if value < 1 or value != int(value):
        raise ManifestError(f"{column} must be a whole number >= 1, got {row[column]}")
    return int(value)


def _precision(row: Mapping[str, str], column: str) -> Precision | None:
    text = row.get(column, "").lower()
    if not text:
        return None
    if text not in set(Precision):
        raise ManifestError(f"{column} must be one of {', '.join(Precision)}, got {text!r}")
    return Precision(text)


def _measured_s(row: Mapping[str, str], columns: Sequence[str]) -> float:
    for column in columns:
        value = _number(row, column)
        if value is not None and value > 0:
            return value * MILLI
    return math.nan
