"""The numbers of one question: coefficients of its step, limits, and moments of its workload."""

from dataclasses import fields
from functools import lru_cache

from fleetline.model.kinds import mean_contexts, shared_stay_share
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.replica import Replica
from fleetline.model.roofline import step_time
from fleetline.model.step_time import StepTime
from fleetline.model.workload import Workload

COEFFICIENTS = tuple(field.name for field in fields(StepTime))
"""Names of the coefficients of a step, in the order of their columns."""

NUMBERS = (
    *COEFFICIENTS,
    "kv_capacity_tokens",
    "max_sequences",
    "step_token_budget",
    "lanes",
    "context_tokens",
    "context_square",
    "window_context_tokens",
    "shared_stay",
    "dispersion_beyond",
    "replicas",
)
"""Names of what `numbers` returns."""


@lru_cache(maxsize=256)
def _replica_numbers(replica: Replica) -> tuple[float, ...]:
    step_of = step_time(replica)
    return (
        *(getattr(step_of, name) for name in COEFFICIENTS),
        kv_capacity_tokens(replica),
        replica.max_sequences,
        replica.step_token_budget,
        replica.lanes,
    )


def numbers(replica: Replica, workload: Workload, replicas: float) -> tuple[float, ...]:
    """Coefficients of one question, in the order of `NUMBERS`."""
    lengths = workload.lengths
    return (
        *_replica_numbers(replica),
        *mean_contexts(lengths, replica.architecture.window_tokens),
        shared_stay_share(lengths),
        workload.dispersion - 1.0,
        replicas,
    )
