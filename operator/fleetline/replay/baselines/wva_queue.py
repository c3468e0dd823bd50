"""
WVA's queueing model: a birth-death chain with load-dependent service, means only.

    T(n) = alpha + n (beta (i + o) / (o + 1) + gamma (i + o/2))
    mu(n) = n / (prefill(n) + o decode(n)),   p(n+1) = p(n) lambda / mu(min(n+1, Nb))

The largest rate at which mean TTFT and mean ITL hold is found by bisection;
replicas = ceil(rate / it). The parameters are those of the true step time, the best case.

Source: workload-variant-autoscaler internal/queueing, docs/developer-guide/slo-queuemodel.md.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from fleetline.model.objective import Metric
from fleetline.replay.baselines.baseline import Baseline
from fleetline.replay.baselines.hpa_behavior import HpaBehavior
from fleetline.replay.baselines.wva_chain import OPTIMIZER_PERIOD_S, ChainState, act, begin
from fleetline.replay.observation import Observation
from fleetline.replay.site import Site

MAX_QUEUE = 100
"""Waiting requests that the chain of the sizing allows."""

BISECTIONS = 60
LOAD_RANGE = (0.001, 0.999)
"""Search range of the rate, as shares of the slowest and the fastest service rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaQueueParameters:
    """The three parameters of a step, the batch limit, and targets for means."""

    alpha_s: float
    beta_s_per_token: float
    gamma_s_per_token: float
    max_batch: int = 256
    time_to_first_token_s: float | None = None
    inter_token_latency_s: float | None = None
    target_factor: float = 1.0
    """Factor on both targets: what hindsight tunes, since the model holds means."""
    behavior: HpaBehavior = HpaBehavior()


@dataclass(frozen=True, slots=True)
class MeanLatency:
    """Means at one rate."""

    time_to_first_token_s: float
    inter_token_latency_s: float


def step(
    parameters: WvaQueueParameters, state: ChainState, seen: Observation
) -> tuple[ChainState, int]:
    """One optimization and one sync of the HPA behind it."""
    rate, prompt, output = seen.arrival_rate_per_s, seen.prompt_tokens, seen.output_tokens
    if rate is None or prompt is None or output is None:
        return state, seen.current_replicas
    # Lengths are rounded to 5 % so that the sizing of one mix is done once.
    ceiling = sized_rate_per_s(parameters, _rounded(prompt), _rounded(output))
    wanted = max(1, math.ceil(rate / ceiling - 1e-9))
    return act(parameters.behavior, state, seen, seen.bounded(wanted))


@functools.lru_cache(maxsize=4096)
def sized_rate_per_s(parameters: WvaQueueParameters, prompt: float, output: float) -> float:
    """Largest rate of one replica at which the means hold. [1/s]"""
    low_share, high_share = LOAD_RANGE
    low = low_share * _service_rate(parameters, 1, prompt, output)
    high = high_share * _service_rate(parameters, parameters.max_batch, prompt, output)
    if _holds(parameters, high, prompt, output):
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _holds(parameters, middle, prompt, output):
            low = middle
        else:
            high = middle
    return low


def mean_latency(
    parameters: WvaQueueParameters, rate_per_s: float, prompt: float, output: float
) -> MeanLatency:
    """Solve the chain at one arrival rate."""
    batch = parameters.max_batch
    states = np.arange(1, batch + MAX_QUEUE + 1)
    served = np.minimum(states, batch)
    rates = np.array([_service_rate(parameters, n, prompt, output) for n in range(1, batch + 1)])
    log_p = np.concatenate(([0.0], np.cumsum(np.log(rate_per_s / rates[served - 1]))))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    in_service = float(p[1:] @ served)
    throughput = rate_per_s * (1 - float(p[-1]))
    response_s = float(p[1:] @ states) / throughput
    service_s = in_service / throughput
    prefill_s = _prefill_s(parameters, in_service, prompt, output)
    return MeanLatency(
        response_s - service_s + prefill_s + _decode_s(parameters, in_service, prompt, output),
        (service_s - prefill_s) / output,
    )


def _holds(parameters: WvaQueueParameters, rate: float, prompt: float, output: float) -> bool:
    means = mean_latency(parameters, rate, prompt, output)
    factor = parameters.target_factor
    first, gap = parameters.time_to_first_token_s, parameters.inter_token_latency_s
    return (first is None or means.time_to_first_token_s <= factor * first) and (
        gap is None or means.inter_token_latency_s <= factor * gap
    )


def _step_s(parameters: WvaQueueParameters, n: float, prompt: float, output: float) -> float:
    per_sequence = parameters.beta_s_per_token * (prompt + output) / (output + 1)
    return parameters.alpha_s + n * (
        per_sequence + parameters.gamma_s_per_token * (prompt + output / 2)
    )


def _prefill_s(parameters: WvaQueueParameters, n: float, prompt: float, output: float) -> float:
    own = (parameters.beta_s_per_token + parameters.gamma_s_per_token) * prompt
    return _step_s(parameters, n, prompt, output) + own


def _decode_s(parameters: WvaQueueParameters, n: float, prompt: float, output: float) -> float:
    own = parameters.beta_s_per_token + parameters.gamma_s_per_token * (prompt + output / 2)
    return _step_s(parameters, n, prompt, output) + own


def _service_rate(parameters: WvaQueueParameters, n: int, prompt: float, output: float) -> float:
    prefill_s = _prefill_s(parameters, n, prompt, output)
    return n / (prefill_s + output * _decode_s(parameters, n, prompt, output))


def _rounded(tokens: float) -> float:
    return max(1.0, round(math.exp(round(math.log(max(1.0, tokens)) / 0.05) * 0.05), 3))


def defaults(site: Site, target_factor: float = 1.0) -> WvaQueueParameters:
    """Parameters of the true step time; objectives taken as targets of the mean."""
    time = site.step_time
    prompt, output = site.prompt_tokens, site.output_tokens
    # T(n) spreads a prompt and the per-sequence work over the steps of an answer.
    beta = (time.prefill_token_s * prompt + (time.sequence_s) * (output + 1)) / (prompt + output)
    return WvaQueueParameters(
        alpha_s=time.fixed_s + time.weights_read_s + time.experts_read_s,
        beta_s_per_token=beta,
        gamma_s_per_token=time.kv_read_s_per_token + time.window_read_s_per_token,
        max_batch=site.replica.max_sequences,
        time_to_first_token_s=site.target_s(Metric.TIME_TO_FIRST_TOKEN),
        inter_token_latency_s=site.target_s(Metric.TIME_PER_OUTPUT_TOKEN)
        or site.target_s(Metric.INTER_TOKEN_LATENCY),
        target_factor=target_factor,
    )


BASELINE = Baseline(
    name="wva-queue",
    source="WVA queueing model with the true step time; objectives as mean targets; HPA behind it",
    period_s=OPTIMIZER_PERIOD_S,
    scrape_s=None,
    default=defaults,
    tunings=lambda site: tuple(
        defaults(site, factor) for factor in (0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 1.0)
    ),
    begin=begin,
    step=step,
)
