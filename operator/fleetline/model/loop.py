"""
The decode loop: arrival rate, step time and loop gain at a given number of decoding requests.

    lambda(N) = N / (O t(1 + N) + N P)        g = lambda dW/dN = lambda (O t' + P)

A request needs O decode steps. Each lasts t, and on top of it the prefill work P of the requests
that arrive meanwhile. An arrival finds N others (arrival theorem), so its steps carry 1 + N; read
backwards, the arrival rate is an explicit function of N and no fixed point has to be iterated.
"""

from dataclasses import dataclass

import numpy as np

from fleetline.model.lanes import Array, Lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """State of one lane, shape (questions, points)."""

    decoding: Array
    """Mean number of requests in the decode phase, N. [requests]"""
    arrival_rate_per_s: Array
    step_s: Array
    """Mean time of a decode step without prefill work. [s]"""
    step_slope_s: Array
    """What one more request adds to it. [s]"""
    prefill_utilization: Array
    """Share of time that goes to prefill work. 0..1"""
    loop_gain: Array

    @property
    def token_s(self) -> Array:
        """Mean time between two tokens of a request, prefill of others included. [s]"""
        return self.step_s / (1.0 - self.prefill_utilization)


def decode_steps(lanes: Lanes) -> Array:
    """Mean decode steps of a request: the first token comes with the prefill. [steps]"""
    outputs = _mean(lanes, lanes.kinds.output_tokens)
    return np.maximum(outputs - 1.0, 1e-9) / lanes.step["tokens_per_step"]


def mean_context_tokens(lanes: Lanes) -> Array:
    """Mean context of a request in the decode phase; long outputs stay longer. [tokens]"""
    kinds = lanes.kinds
    held = kinds.prompt_tokens + kinds.cached_tokens + kinds.output_tokens / 2.0
    return _mean(lanes, kinds.output_tokens * held) / _mean(lanes, kinds.output_tokens)


def prefill_work_s(lanes: Lanes) -> Array:
    """Work that the prompt of each kind brings, alone; shape (questions, 1, kinds). [s]"""
    kinds, step = lanes.kinds, lanes.step
    pairs = kinds.prompt_tokens * (kinds.cached_tokens + kinds.prompt_tokens / 2.0)
    token_s = step["prefill_token_s"][:, :, np.newaxis]
    pair_s = step["prefill_pair_s"][:, :, np.newaxis]
    return kinds.prompt_tokens * token_s + pairs * pair_s


def mean_prefill_work_s(lanes: Lanes) -> Array:
    """Mean prefill work of a request, P. [s]"""
    return _mean(lanes, prefill_work_s(lanes))


def decode_step_s(lanes: Lanes, sequences: Array) -> Array:
    """`StepTime.decode_s` on arrays, every request with the mean context. [s]"""
    step, context = lanes.step, mean_context_tokens(lanes)
    windowed = np.minimum(context, step["window_tokens"])
    touched = 1.0 - step["expert_miss_probability"] ** sequences
    read_s = (
        step["weights_read_s"]
        + step["experts_read_s"] * touched
        + sequences
        * (step["kv_read_s_per_token"] * context + step["window_read_s_per_token"] * windowed)
    )
    compute_s = sequences * (
        step["token_compute_s"] + step["context_compute_s_per_token"] * context
    )
    return step["fixed_s"] + np.maximum(read_s, compute_s) + step["sequence_s"] * sequences


def decode_limit(lanes: Lanes) -> Array:
    """Most requests that one lane runs at once: its slots or its KV cache. [requests]"""
    kinds = lanes.kinds
    held = kinds.prompt_tokens + kinds.cached_tokens + kinds.output_tokens / 2.0
    mean_held = _mean(lanes, kinds.output_tokens * held) / _mean(lanes, kinds.output_tokens)
    return np.minimum(lanes.max_sequences, lanes.kv_capacity_tokens / mean_held)


def open_loop(lanes: Lanes, decoding: Array) -> Loop:
    """State when requests come from outside and find `decoding` others in the batch."""
    return _loop(lanes, decoding, decode_step_s(lanes, 1.0 + decoding))


def closed_loop(lanes: Lanes, decoding: Array) -> Loop:
    """State when the batch holds exactly `decoding` requests all the time."""
    return _loop(lanes, decoding, decode_step_s(lanes, np.maximum(decoding, 1.0)))


def observed_loop(lanes: Lanes, decoding: Array, arrival_rate_per_s: Array) -> Loop:
    """State when both the number in the batch and the arrival rate of a lane are measured."""
    steps, work_s = decode_steps(lanes), mean_prefill_work_s(lanes)
    slope_s = decode_step_s(lanes, 2.0 + decoding) - decode_step_s(lanes, 1.0 + decoding)
    return Loop(
        decoding=decoding,
        arrival_rate_per_s=arrival_rate_per_s,
        step_s=decode_step_s(lanes, 1.0 + decoding),
        step_slope_s=slope_s,
        prefill_utilization=np.minimum(arrival_rate_per_s * work_s, 0.99),
        loop_gain=arrival_rate_per_s * (steps * slope_s + work_s),
    )


def _loop(lanes: Lanes, decoding: Array, step_s: Array) -> Loop:
    steps, work_s = decode_steps(lanes), mean_prefill_work_s(lanes)
    slope_s = decode_step_s(lanes, 2.0 + decoding) - decode_step_s(lanes, 1.0 + decoding)
    rate = decoding / (steps * step_s + decoding * work_s)
    return Loop(
        decoding=decoding,
        arrival_rate_per_s=rate,
        step_s=step_s,
        step_slope_s=slope_s,
        prefill_utilization=rate * work_s,
        loop_gain=rate * (steps * slope_s + work_s),
    )


def _mean(lanes: Lanes, values: Array) -> Array:
    return np.asarray((lanes.kinds.weights * values).sum(axis=-1))
