"""
WVA publishes a gauge, an HPA acts on it: the second half of every WVA baseline.

The HPA reads `wva_desired_replicas` (External, AverageValue 1) one scrape later, so it acts on the
recommendation of the turn before.

Source: llm-d-incubation/workload-variant-autoscaler docs; GLOBAL_OPT_INTERVAL 15 s.
"""

from dataclasses import dataclass

from fleetline.replay.baselines.hpa_behavior import HpaBehavior, HpaState, average_value, behave
from fleetline.replay.observation import Observation

OPTIMIZER_PERIOD_S = 15.0


@dataclass(frozen=True, slots=True)
class ChainState:
    """The gauge as last scraped, and the HPA behind it."""

    published: int | None = None
    hpa: HpaState = HpaState()


def begin(_: object, __: int) -> ChainState:
    """State after a start: nothing published yet."""
    return ChainState()


def act(
    behavior: HpaBehavior, state: ChainState, seen: Observation, recommended: int
) -> tuple[ChainState, int]:
    """Let the HPA act on what was published before, then publish anew."""
    if state.published is None:
        return ChainState(recommended, state.hpa), seen.current_replicas
    wanted = average_value(seen, float(state.published), 1.0, behavior.tolerance)
    hpa, desired = behave(behavior, state.hpa, seen, seen.bounded(wanted))
    return ChainState(recommended, hpa), desired
