"""
NVIDIA Dynamo's planner: a throughput loop every 180 s is the floor, a load loop every 5 s may add.

    throughput: replicas = ceil(requests / interval / rate of one engine within both targets)
    load:       +1 if every engine's estimated TTFT or ITL is above its target;
                -1 if all would still be below 0.8 of it with one replica less

One aggregated engine: a step decodes n sequences and carries the prompt tokens that n sequences
bring, less what the prefix cache holds. The performance model is the true step time (its
regression at its best). One scaling step at a time: nothing moves while replicas are starting.

Source: ai-dynamo/dynamo components/src/dynamo/planner/core/{throughput_scaling,load_scaling}.py,
config/defaults.py (180 s, 5 s, sensitivity 0.8), perf_model/agg.py.
"""

import math
from dataclasses import dataclass, field, replace

from fleetline.model.objective import Metric
from fleetline.model.step_time import StepTime
from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.observation import Observation, ReplicaSample
from fleetline.replay.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoParameters:
    """The engine and its targets; defaults of the planner's configuration."""

    step_time: StepTime
    kv_capacity_tokens: float
    max_sequences: int
    time_to_first_token_s: float | None
    inter_token_latency_s: float | None
    step_token_budget: int = 8192
    throughput_interval_s: float = 180.0
    sensitivity: float = 0.8
    target_factor: float = 1.0
    """Factor on both targets: what hindsight tunes, since the planner holds means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoState:
    """Arrivals of the interval under way, and the floor of the last."""

    floor: int = 1
    interval_began_s: float | None = None
    rates_per_s: tuple[float, ...] = field(default=())


def step(
    parameters: DynamoParameters, state: DynamoState, seen: Observation
) -> tuple[DynamoState, int]:
    """One tick of the load loop, and of the throughput loop when it is due."""
    state = _throughput(parameters, state, seen)
    current = seen.current_replicas
    if seen.starting_replicas or seen.ready_replicas != current:
        return state, current
    change = _load_change(parameters, seen)
    return state, seen.bounded(max(state.floor, current + change))


def engine_rate_per_s(parameters: DynamoParameters, load: "_Load") -> float:
    """
    Compute the request rate of one engine at the largest batch within both targets. [1/s]

    The batch is also bounded by slots, by the KV cache, and by prefill keeping up with decode:
    prompt <= output x (token budget - batch).
    """
    most = min(
        parameters.max_sequences,
        max(1, math.floor(parameters.kv_capacity_tokens / (load.prompt + load.output / 2))),
        max(1, math.floor(parameters.step_token_budget - load.prompt / load.output)),
    )
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _holds(parameters, middle, load) else (low, middle - 1)
    return low / (load.output * _step_s(parameters, low, load))


def _holds(parameters: DynamoParameters, batch: int, load: "_Load") -> bool:
    factor, time = parameters.target_factor, parameters.step_time
    first, gap = parameters.time_to_first_token_s, parameters.inter_token_latency_s
    step_s = _step_s(parameters, batch, load)
    queued = batch * load.computed / load.output
    first_s = (queued + load.computed) * time.prefill_token_s + step_s
    return (gap is None or step_s <= factor * gap) and (first is None or first_s <= factor * first)


def _step_s(parameters: DynamoParameters, batch: float, load: "_Load") -> float:
    return parameters.step_time.step_s(
        sequences=batch,
        context_tokens=batch * (load.prompt + load.output / 2),
        prefill_tokens=batch * load.computed / load.output,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """Mean lengths of the interval."""

    prompt: float
    output: float
    hit_share: float = 0.0

    @property
    def computed(self) -> float:
        """Prompt tokens that are not in the prefix cache. [tokens]"""
        return self.prompt * (1 - self.hit_share)

    @classmethod
    def of(cls, seen: Observation) -> "_Load | None":
        if seen.prompt_tokens is None or seen.output_tokens is None:
            return None
        return cls(
            prompt=seen.prompt_tokens, output=seen.output_tokens, hit_share=seen.prefix_hit_share
        )


def _throughput(parameters: DynamoParameters, state: DynamoState, seen: Observation) -> DynamoState:
    """Collect arrivals; at the end of an interval size for what it saw (constant predictor)."""
    rate = seen.arrival_rate_per_s
    began_s = seen.now_s if state.interval_began_s is None else state.interval_began_s
    rates = state.rates_per_s if rate is None else (*state.rates_per_s, rate)
    load = _Load.of(seen)
    due = seen.now_s - began_s >= parameters.throughput_interval_s
    if not due or not rates or load is None:
        return replace(state, interval_began_s=began_s, rates_per_s=rates)
    demand = sum(rates) / len(rates)
    engine = engine_rate_per_s(parameters, load)
    return DynamoState(floor=max(1, math.ceil(demand / engine)), interval_began_s=seen.now_s)


def _load_change(parameters: DynamoParameters, seen: Observation) -> int:
    load = _Load.of(seen)
    if not seen.samples or load is None:
        return 0
    engines = [_Engine.of(parameters, sample, load) for sample in seen.samples]
    if all(engine.is_above_target(parameters) for engine in engines):
        return 1
    count = len(engines)
    if count < 2:
        return 0
    growth = count / (count - 1)
    grown = [_Engine.of(parameters, sample, load, growth=growth) for sample in seen.samples]
    return -1 if all(engine.stays_below_target(parameters) for engine in grown) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """Estimates for one engine."""

    queue_s: float
    own_prefill_s: float
    inter_token_latency_s: float
    kv_tokens: float

    @classmethod
    def of(
        cls,
        parameters: DynamoParameters,
        sample: ReplicaSample,
        load: _Load,
        *,
        growth: float = 1.0,
    ) -> "_Engine":
        running = growth * sample.running
        kv_tokens = growth * sample.kv_utilization * parameters.kv_capacity_tokens
        prefill = running * load.computed / load.output
        computed_share = 1 - load.hit_share
        time = parameters.step_time
        gap_s = time.step_s(
            sequences=max(1.0, running), context_tokens=kv_tokens, prefill_tokens=prefill
        )
        return cls(
            queue_s=growth * sample.queued_tokens * computed_share * time.prefill_token_s,
            own_prefill_s=load.computed * time.prefill_token_s + gap_s,
            inter_token_latency_s=gap_s,
            kv_tokens=kv_tokens,
        )

    def is_above_target(self, parameters: DynamoParameters) -> bool:
        factor = parameters.target_factor
        first, gap = parameters.time_to_first_token_s, parameters.inter_token_latency_s
        return (first is not None and self.queue_s + self.own_prefill_s > factor * first) or (
            gap is not None and self.inter_token_latency_s > factor * gap
        )

    def stays_below_target(self, parameters: DynamoParameters) -> bool:
        factor, share = parameters.target_factor, parameters.sensitivity
        first, gap = parameters.time_to_first_token_s, parameters.inter_token_latency_s
        return (
            (first is None or self.queue_s < (factor * first - self.own_prefill_s) * share)
            and self.kv_tokens < parameters.kv_capacity_tokens
            and (gap is None or self.inter_token_latency_s < share * factor * gap)
        )


def defaults(site: Site, target_factor: float = 1.0) -> DynamoParameters:
    """Take the site's engine, objectives as targets of the mean."""
    return DynamoParameters(
        step_time=site.step_time,
        kv_capacity_tokens=site.kv_capacity_tokens,
        max_sequences=site.replica.max_sequences,
        step_token_budget=site.replica.step_token_budget,
        time_to_first_token_s=site.target_s(Metric.TIME_TO_FIRST_TOKEN),
        inter_token_latency_s=site.target_s(Metric.TIME_PER_OUTPUT_TOKEN)
        or site.target_s(Metric.INTER_TOKEN_LATENCY),
        target_factor=target_factor,
    )


BASELINE = Baseline(
    name="dynamo",
    source="Dynamo planner, loops of 180 s and 5 s, sensitivity 0.8, true step time",
    period_s=5.0,
    scrape_s=5.0,
    default=defaults,
    tunings=lambda site: tuple(
        defaults(site, factor) for factor in (0.25, 0.35, 0.45, 0.55, 0.7, 0.85, 1.0)
    ),
    begin=lambda _, __: DynamoState(),
    step=step,
)
