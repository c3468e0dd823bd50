"""
WVA saturation, version 2: tokens demanded against tokens a replica may hold.

    required = demand / 0.85 - (ready + pending) x PRC      up by ceil(required / PRC)
    spare    = ready x PRC - demand / 0.70                  down by floor(spare / PRC)

PRC, per-replica capacity in tokens, is min(k1, k2): k1 = 0.80 of the KV cache, k2 what was in use
when a queue of 5 was seen (mean of the last 10), else what the batch limits allow.

Source: workload-variant-autoscaler internal/engines/analyzers/saturation_v2 and pipeline.
"""

import math
from dataclasses import dataclass

from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.baselines.hpa_behavior import HpaBehavior
from fleetline.replay.baselines.wva_chain import OPTIMIZER_PERIOD_S, ChainState, act
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site

REMEMBERED = 10
"""Observed capacities that the rolling mean keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaV2Parameters:
    """Limits of the engine, and thresholds with their published defaults."""

    kv_capacity_tokens: float
    step_token_budget: int
    max_sequences: int
    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    """Waiting requests from which on a replica counts as full."""
    up_threshold: float = 0.85
    down_threshold: float = 0.70
    behavior: HpaBehavior = HpaBehavior()


@dataclass(frozen=True, slots=True)
class WvaV2State:
    """Observed capacities, and the gauge with the HPA behind it."""

    observed_tokens: tuple[float, ...] = ()
    chain: ChainState = ChainState()


def step(
    parameters: WvaV2Parameters, state: WvaV2State, seen: Observation
) -> tuple[WvaV2State, int]:
    """One optimization and one sync of the HPA behind it."""
    observed, wanted = recommend(parameters, state.observed_tokens, seen)
    chain, desired = act(parameters.behavior, state.chain, seen, wanted)
    return WvaV2State(observed, chain), desired


def recommend(
    parameters: WvaV2Parameters, observed_tokens: tuple[float, ...], seen: Observation
) -> tuple[tuple[float, ...], int]:
    """Capacities seen so far, and the count that tokens ask for."""
    current, prompt, output = seen.current_replicas, seen.prompt_tokens, seen.output_tokens
    if not seen.samples or prompt is None or output is None:
        return observed_tokens, current
    kv_tokens = parameters.kv_capacity_tokens
    full = tuple(
        one.kv_utilization * kv_tokens
        for one in seen.samples
        if one.waiting >= parameters.queue_threshold
    )
    observed = (*observed_tokens, *full)[-REMEMBERED:]
    capacity = capacity_tokens(parameters, observed, prompt, output)
    demand = sum(
        one.kv_utilization * kv_tokens + one.waiting * (prompt + output) for one in seen.samples
    )
    required = demand / parameters.up_threshold - current * capacity
    spare = seen.ready_replicas * capacity - demand / parameters.down_threshold
    if required > 0:
        return observed, seen.bounded(current + math.ceil(required / capacity))
    if spare > 0:
        return observed, seen.bounded(current - math.floor(spare / capacity))
    return observed, current


def capacity_tokens(
    parameters: WvaV2Parameters, observed: tuple[float, ...], prompt: float, output: float
) -> float:
    """Tokens one replica may hold: the first of observed and derived batch limits, and the KV."""
    k1 = parameters.kv_threshold * parameters.kv_capacity_tokens
    if observed:
        k2 = sum(observed) / len(observed)
    else:
        batch = min(
            parameters.step_token_budget * output / (prompt + output), parameters.max_sequences
        )
        k2 = batch * (prompt + output / 2)
    return max(1.0, min(k1, k2))


def defaults(site: Site, kv_threshold: float = 0.80) -> WvaV2Parameters:
    """Combine published thresholds with the limits of the site's engine."""
    return WvaV2Parameters(
        kv_capacity_tokens=site.kv_capacity_tokens,
        step_token_budget=site.replica.step_token_budget,
        max_sequences=site.replica.max_sequences,
        kv_threshold=kv_threshold,
    )


BASELINE = Baseline(
    name="wva-v2",
    source="WVA saturation v2: KV 0.80, queue 5, 0.85 up, 0.70 down; HPA behind it",
    period_s=OPTIMIZER_PERIOD_S,
    scrape_s=None,
    default=defaults,
    tunings=lambda site: tuple(
        defaults(site, kv) for kv in (0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
    ),
    begin=lambda _, __: WvaV2State(),
    step=step,
)
