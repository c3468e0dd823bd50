"""How fast counts may change: the HPA's `behavior`, same fields, same meaning, typed."""

from dataclasses import dataclass
from enum import StrEnum


class PolicyType(StrEnum):
    """What a scaling policy counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class SelectPolicy(StrEnum):
    """Which of several policies binds."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most `value` pods or percent may be added or removed in `period_s` seconds."""

    type: PolicyType
    value: int
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRules:
    """One direction of change."""

    stabilization_window_s: float
    policies: tuple[ScalingPolicy, ...]
    select_policy: SelectPolicy = SelectPolicy.MAX


SCALE_UP = ScalingRules(
    stabilization_window_s=0.0,
    policies=(
        ScalingPolicy(PolicyType.PERCENT, 100, 15.0),
        ScalingPolicy(PolicyType.PODS, 4, 15.0),
    ),
)
"""The HPA's default: double, or add four, every 15 s."""

SCALE_DOWN = ScalingRules(
    stabilization_window_s=300.0,
    policies=(ScalingPolicy(PolicyType.PERCENT, 100, 15.0),),
)
"""The HPA's default. On replayed traces as many GPU-hours as with 60 s at more windows met: after a
lull, demand comes back to replicas that are still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """Both directions."""

    scale_up: ScalingRules = SCALE_UP
    scale_down: ScalingRules = SCALE_DOWN
