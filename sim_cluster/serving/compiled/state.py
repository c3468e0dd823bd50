"""The state of a fleet as arrays of records: what the compiled functions read and write."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IDLE, WAKING, MIXED, LEAPING = 0, 1, 2, 3
"""What a replica does until its next event: nothing, expect a request, one step, many steps."""

NOBODY = -1

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Record = Any
"""One element of an array of records; its fields are those of the dtype."""

REQUEST = np.dtype(
    [
        ("arrival_s", np.float64),  # at the router
        ("ready_s", np.float64),  # in the engine: routed, and through HTTP and tokenizer
        ("admitted_s", np.float64),
        ("first_token_s", np.float64),
        ("last_token_s", np.float64),  # kept only while preempted
        ("finished_s", np.float64),
        ("earlier_tokens", np.float64),  # generated before the last preemption
        ("joined", np.int64),  # decode step of its replica at which it began to decode
        ("finish", np.int64),  # decode step at which it will be done
        ("order", np.int64),  # of admission
        ("prompt_tokens", np.int32),
        ("output_tokens", np.int32),
        ("cached_tokens", np.int32),
        ("prefill_tokens", np.int32),  # to compute before the next token can be sampled
        ("computed_tokens", np.int32),
        ("next", np.int32),  # in a queue
        ("replica", np.int32),  # which served it: number of its life, not of its slot
        ("preemptions", np.int32),
    ],
    align=True,
)

REPLICA = np.dtype(
    [
        ("begin_s", np.float64),  # of the step, or of the first of the run of steps
        ("first_s", np.float64),  # step time of a run: first + slope j before the bend
        ("first_slope_s", np.float64),
        ("second_s", np.float64),  # and second + slope j from the bend on
        ("second_slope_s", np.float64),
        ("bend", np.int64),
        ("steps", np.int64),  # of the run
        ("activity", np.int64),
        ("counter", np.int64),  # decode steps so far
        ("in_flight", np.int64),
        ("running", np.int64),
        ("decoding", np.int64),
        ("growing", np.int64),  # decoding sequences whose context is inside the window
        ("crossing", np.int64),  # of these: how many will leave it
        ("queued", np.int64),
        ("queue_head", np.int64),
        ("queue_tail", np.int64),
        ("partial", np.int64),  # request whose prompt is partly computed
        ("completing_head", np.int64),  # requests whose prompt is complete after this step
        ("completing_tail", np.int64),
        ("context_tokens", np.float64),
        ("window_context_tokens", np.float64),
        ("free_blocks", np.int64),
        ("admissions", np.int64),
        ("life", np.int64),
        ("draining", np.int64),
        ("arrivals", np.int64),
        ("finished", np.int64),
        ("prompt_tokens", np.int64),
        ("generation_tokens", np.float64),
        ("preemptions", np.int64),
        ("prefix_queries_tokens", np.int64),
        ("prefix_hits_tokens", np.int64),
        ("busy_s", np.float64),
        ("time_to_first_token_sum_s", np.float64),
        ("inter_token_latency_sum_s", np.float64),
        ("time_per_output_token_sum_s", np.float64),
        ("residence_time_sum_s", np.float64),
        ("waiting_time_sum_s", np.float64),
        ("waiting_phase", np.int64),  # requests that never ran
        ("prefill_phase", np.int64),  # ran, and have no token yet
        ("decode_phase", np.int64),
        ("phase_since_s", np.float64),
        ("waiting_area_s", np.float64),  # integrals of these counts over time
        ("prefill_area_s", np.float64),
        ("decode_area_s", np.float64),
    ],
    align=True,
)

ROUTER = np.dtype(
    [
        ("policy", np.int64),
        ("routable", np.int64),
        ("turn", np.int64),
        ("random", np.uint64),
        ("next_arrival", np.int64),
        ("rejected", np.int64),
        ("held", np.int64),
        ("held_head", np.int64),
        ("held_tail", np.int64),
        ("now_s", np.float64),
        ("events", np.int64),
    ],
    align=True,
)


class Machine(NamedTuple):
    """Step coefficients and limits of one replica: `StepTime` and `EngineLimits`, flat."""

    fixed_s: float
    weights_read_s: float
    experts_read_s: float
    kv_read_s_per_token: float
    window_read_s_per_token: float
    window_tokens: int
    token_compute_s: float
    context_compute_s_per_token: float
    sequence_s: float
    prefill_token_s: float
    prefill_pair_s: float
    request_s: float
    tokens_per_step: float
    max_sequences: int
    step_token_budget: int
    blocks: int
    watermark_blocks: int
    units_per_block: int


class Histograms(NamedTuple):
    """Counts per slot and bucket (not cumulative), the last bucket without a bound."""

    time_to_first_token: Ints
    inter_token_latency: Ints
    time_per_output_token: Ints
    residence_time: Ints
    waiting_time: Ints


class State(NamedTuple):
    """A fleet: its requests, its replicas by slot, its router."""

    machine: Machine
    touched_share: Floats
    """Share of experts that so many sequences touch."""
    requests: Records
    replicas: Records
    router: Records
    finish_keys: Ints
    """A heap for each slot: when decoding sequences finish, in decode steps."""
    finish_ids: Ints
    cross_keys: Ints
    """A heap for each slot: when contexts outgrow the sliding window."""
    cross_ids: Ints
    phases: Ints
    """For each slot: how many sequences take a block at each step of the cycle of a block."""
    next_event_s: Floats
    winners: Ints
    """Tournament tree over `next_event_s`: the root is the earliest slot."""
    loads: Ints
    """Requests in flight, by slot."""
    routable: Ints
    """Slots that take new requests."""
    histograms: Histograms
    first_token_bounds: Floats
    token_bounds: Floats
    request_bounds: Floats
