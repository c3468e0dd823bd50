"""
Requests by phase of life (before the batch, before the first token, after), integrated over time.

Little's law is checked on these areas: they are accumulated from counts, independently of the
moments that requests record.
"""

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import Record


@compiled
def accrue(one: Record, now_s: float) -> None:
    """Add the time since the last change to the areas under the counts."""
    elapsed_s = now_s - one.phase_since_s
    one.waiting_area_s += one.waiting_phase * elapsed_s
    one.prefill_area_s += one.prefill_phase * elapsed_s
    one.decode_area_s += one.decode_phase * elapsed_s
    one.phase_since_s = now_s


@compiled
def arrive_phase(one: Record, now_s: float) -> None:
    """Count a request that has come."""
    accrue(one, now_s)
    one.waiting_phase += 1


@compiled
def admit_phase(one: Record, now_s: float) -> None:
    """Count a request that joined the batch for the first time."""
    accrue(one, now_s)
    one.waiting_phase -= 1
    one.prefill_phase += 1


@compiled
def first_token_phase(one: Record, now_s: float) -> None:
    """Count a request that got its first token."""
    accrue(one, now_s)
    one.prefill_phase -= 1
    one.decode_phase += 1


@compiled
def finish_phase(one: Record, now_s: float) -> None:
    """Count a request that got its last token."""
    accrue(one, now_s)
    one.decode_phase -= 1
