"""
The same model, asked a question instead of a cluster: how many replicas, at what cost?

    L = lambda W        replicas = min R with R x ceiling(R) x utilization >= lambda

The answer carries its worked chain, step by step, with units.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fleetline.errors import ModelError
from fleetline.model.ceiling import Ceiling, ceiling
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import OperatingPoint, operate
from fleetline.model.queueing import amplification, drain_time_s
from fleetline.model.replica import Replica
from fleetline.model.workload import Workload

MOST_REPLICAS = 100_000
"""Beyond this a question is refused rather than counted."""

SECONDS_PER_HOUR = 3600.0
TOKENS_PER_MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a capacity planner asks."""

    replica: Replica
    workload: Workload
    arrival_rate_per_s: float
    """Requests per second at the whole fleet. [1/s]"""
    objectives: Sequence[Objective]
    allowance_s: float = 0.0
    """Network and gateway, outside the engine: taken off TTFT and end-to-end targets. [s]"""
    target_utilization: float = 1.0
    """Share of the ceiling that may be used. 0..1"""
    price_usd_per_hour: float | None = None
    """Price of one accelerator; None if unknown. [USD/h]"""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One line of the worked chain."""

    name: str
    formula: str
    value: float | str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer."""

    replicas: int
    accelerators: int
    ceiling: Ceiling
    """Of one replica among `replicas`."""
    point: OperatingPoint
    """Where one replica settles at its share of the arrivals."""
    arrival_rate_per_s: float
    concurrency: float
    """Requests in flight in the whole fleet. [requests]"""
    utilization: float
    """Arrival rate over what all ceilings together allow. 0..1"""
    drain_s: float
    """Time to work off what a lost replica hands back to the fleet. [s]"""
    cost_usd_per_hour: float | None
    cost_usd_per_million_tokens: float | None
    steps: tuple[PlanStep, ...]


def engine_objectives(objectives: Sequence[Objective], allowance_s: float) -> list[Objective]:
    """
    Objectives as the engine has to meet them: targets less what is spent outside it.

    Raises
    ------
    ModelError
        If the allowance leaves nothing of a target.
    """
    outside = {Metric.TIME_TO_FIRST_TOKEN, Metric.END_TO_END}
    left = []
    for objective in objectives:
        spent_s = allowance_s if objective.metric in outside else 0.0
        if objective.target_s <= spent_s:
            raise ModelError(
                f"target of {objective.metric} must be > the allowance of {spent_s:g} s, "
                f"got {objective.target_s:g} s"
            )
        left.append(replace(objective, target_s=objective.target_s - spent_s))
    return left


def plan(question: Question) -> Plan:
    """
    Size a fleet.

    Raises
    ------
    ModelError
        If an objective cannot be met by any number of replicas, or a number is out of range.
    """
    if not question.arrival_rate_per_s > 0:
        raise ModelError(f"rate must be > 0 requests/s, got {question.arrival_rate_per_s:g}")
    if not 0 < question.target_utilization <= 1:
        raise ModelError(
            f"target utilization must be > 0 and <= 1, got {question.target_utilization:g}"
        )
    objectives = engine_objectives(question.objectives, question.allowance_s)
    replicas, limit = _replicas(question, objectives)
    share_per_s = question.arrival_rate_per_s / replicas
    point = operate(question.replica, question.workload, share_per_s, replicas=replicas)
    utilization = share_per_s / limit.rate_per_s
    drain_s = drain_time_s(
        backlog_requests=point.concurrency,
        capacity_per_s=replicas * limit.capacity_per_s,
        arrival_rate_per_s=question.arrival_rate_per_s,
    )
    accelerators = replicas * question.replica.accelerators
    price = question.price_usd_per_hour
    hourly = None if price is None else price * accelerators
    output_per_s = question.arrival_rate_per_s * question.workload.lengths.mean_output_tokens
    per_million = None if hourly is None else cost_usd_per_million_tokens(hourly, output_per_s)
    answer = Plan(
        replicas=replicas,
        accelerators=accelerators,
        ceiling=limit,
        point=point,
        arrival_rate_per_s=question.arrival_rate_per_s,
        concurrency=point.concurrency * replicas,
        utilization=utilization,
        drain_s=drain_s,
        cost_usd_per_hour=hourly,
        cost_usd_per_million_tokens=per_million,
        steps=(),
    )
    return replace(answer, steps=_steps(question, answer))


def cost_usd_per_million_tokens(usd_per_hour: float, token_rate_per_s: float) -> float:
    """Dollars for a million output tokens at a steady rate. [USD/10^6 tokens]"""
    return usd_per_hour / SECONDS_PER_HOUR / token_rate_per_s * TOKENS_PER_MILLION


def _replicas(question: Question, objectives: Sequence[Objective]) -> tuple[int, Ceiling]:
    """Smallest R with R x ceiling(R) x utilization >= lambda, by bisection: it grows with R."""
    rate_per_s = question.arrival_rate_per_s / question.target_utilization

    def at(replicas: int) -> Ceiling:
        return ceiling(question.replica, question.workload, objectives, replicas=replicas)

    _refuse_what_does_not_fit(question)
    ample = at(MOST_REPLICAS)
    if not ample.is_attainable:
        raise ModelError(ample.because)
    low, high = 0, 1
    while high * at(high).rate_per_s < rate_per_s:
        low, high = high, high * 2
        if high > MOST_REPLICAS:
            raise ModelError(f"replicas must be <= {MOST_REPLICAS}, got more than {low}")
    while high - low > 1:
        middle = (low + high) // 2
        enough = middle * at(middle).rate_per_s >= rate_per_s
        low, high = (low, middle) if enough else (middle, high)
    return high, at(high)


def _refuse_what_does_not_fit(question: Question) -> None:
    replica, lengths = question.replica, question.workload.lengths
    held = lengths.mean_prompt_tokens + lengths.mean_output_tokens
    room = kv_capacity_tokens(replica)
    if room < held:
        raise ModelError(
            f"KV cache must be >= one request ({held:.0f} tokens), got room for {room:.0f} tokens: "
            f"{replica.architecture.name} in {replica.weight_precision} does not fit on "
            f"{replica.accelerators} x {replica.accelerator.name}"
        )


def _steps(question: Question, answer: Plan) -> tuple[PlanStep, ...]:
    lengths, point, limit = question.workload.lengths, answer.point, answer.ceiling
    rate, count = answer.arrival_rate_per_s, answer.replicas
    steps = [
        PlanStep("arrival rate", "lambda", rate, "requests/s"),
        PlanStep("prompt", "mean", lengths.mean_prompt_tokens, "tokens"),
        PlanStep("output", "mean", lengths.mean_output_tokens, "tokens"),
        PlanStep(
            "ceiling of one replica",
            f"largest rate at which every objective holds, pooled over {count}",
            limit.rate_per_s,
            "requests/s",
        ),
        PlanStep("limit", "what sets the ceiling", str(limit.limit), ""),
        PlanStep(
            "replicas",
            f"min R: R x ceiling(R) x {question.target_utilization:g} >= lambda",
            float(count),
            "",
        ),
        PlanStep(
            "accelerators",
            f"{count} x {question.replica.accelerators} {question.replica.accelerator.name}",
            float(answer.accelerators),
            "",
        ),
        PlanStep("residence time", "W(L), the fixed point", point.residence_time_s, "s"),
        PlanStep(
            "in flight",
            f"L = lambda x W = {rate:g} x {point.residence_time_s:.4g}",
            answer.concurrency,
            "requests",
        ),
        PlanStep("utilization", "lambda / (R x ceiling)", answer.utilization, ""),
        PlanStep("loop gain", "g = lambda dW/dL", point.loop_gain, ""),
        PlanStep("amplification", "1 / (1 - g)", amplification(point.loop_gain), ""),
        PlanStep(
            "drain time",
            f"B / (C - lambda), B = {point.concurrency:.4g} requests of a lost replica",
            answer.drain_s,
            "s",
        ),
    ]
    if answer.cost_usd_per_hour is not None and answer.cost_usd_per_million_tokens is not None:
        steps += [
            PlanStep(
                "cost",
                f"{answer.accelerators} x {question.price_usd_per_hour:g} USD/h",
                answer.cost_usd_per_hour,
                "USD/h",
            ),
            PlanStep(
                "cost of output",
                "USD/h / 3600 / (lambda x output tokens) x 10^6",
                answer.cost_usd_per_million_tokens,
                "USD/10^6 tokens",
            ),
        ]
    return tuple(steps)
