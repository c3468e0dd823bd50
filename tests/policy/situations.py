"""Strategies: any situation a fleet may be in."""

from hypothesis import strategies as st

from fleetline.model.ceiling import Ceiling, Limit
from fleetline.policy.behavior import (
    Behavior,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)
from fleetline.policy.decision import Reason
from fleetline.policy.history import Evidence, History, Recommendation, ScaleEvent
from fleetline.policy.situation import CeilingAt, Demand, Health, Situation

NOW_S = 100_000.0


def ceiling_of(alone_per_s: float, pooling: float) -> CeilingAt:
    """A ceiling that grows with the fleet from `alone_per_s` by at most the factor `pooling`."""

    def at(replicas: int) -> Ceiling:
        rate_per_s = alone_per_s * (pooling - (pooling - 1) / max(1, replicas) ** 0.5)
        return Ceiling(
            rate_per_s=rate_per_s,
            limit=Limit.TIME_TO_FIRST_TOKEN,
            concurrency=rate_per_s * 10.0,
            residence_time_s=10.0,
            loop_gain=0.5,
            utilization_of_prefill=0.5,
            capacity_per_s=alone_per_s * pooling * 1.2,
        )

    return at


RATES = st.floats(min_value=0.0, max_value=1e4)
COUNTS = st.integers(min_value=0, max_value=60)


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    waiting = draw(st.sampled_from([0.0, 3.0, 500.0]))
    return Demand(
        arrival_rate_per_s=draw(RATES),
        expected_rate_per_s=draw(RATES),
        in_flight_requests=waiting + draw(RATES),
        waiting_requests=waiting,
        margin_factor=draw(st.floats(min_value=0.85, max_value=1.6)),
    )


@st.composite
def scaling_rules(draw: st.DrawFn) -> ScalingRules:
    policy = st.builds(
        ScalingPolicy,
        st.sampled_from(PolicyType),
        st.integers(min_value=1, max_value=200),
        st.sampled_from([15.0, 60.0, 600.0]),
    )
    return ScalingRules(
        stabilization_window_s=draw(st.sampled_from([0.0, 60.0, 300.0])),
        policies=tuple(draw(st.lists(policy, min_size=1, max_size=3))),
        select_policy=draw(st.sampled_from(SelectPolicy)),
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    ages = st.floats(min_value=0.0, max_value=900.0)
    recommendation = st.builds(lambda age, n: Recommendation(NOW_S - age, n), ages, COUNTS)
    event = st.builds(lambda age, a, b: ScaleEvent(NOW_S - age, a, b), ages, COUNTS, COUNTS)
    return History(
        recommendations=tuple(draw(st.lists(recommendation, max_size=6))),
        events=tuple(draw(st.lists(event, max_size=4))),
        left_replicas=draw(st.none() | COUNTS),
        complete_since_s=draw(st.none() | st.builds(lambda age: NOW_S - age, ages)),
        restored_s=draw(st.none() | st.builds(lambda age: NOW_S - age, ages)),
    )


@st.composite
def situations(draw: st.DrawFn, *, held: bool = False) -> Situation:
    least = draw(st.integers(min_value=1, max_value=20))
    alone = draw(st.floats(min_value=0.1, max_value=100.0))
    return Situation(
        now_s=NOW_S,
        current_replicas=draw(COUNTS),
        min_replicas=least,
        max_replicas=draw(st.integers(min_value=least, max_value=60)),
        behavior=Behavior(scale_up=draw(scaling_rules()), scale_down=draw(scaling_rules())),
        demand=draw(st.none() | demands()),
        demand_unknown_because="no series",
        ceiling_at=draw(st.sampled_from([None, ceiling_of(alone, 1.0), ceiling_of(alone, 2.0)])),
        evidence=draw(st.sampled_from(Evidence)),
        latency_above_objective=draw(st.sampled_from(["", "TTFT is missed"])),
        health=draw(
            st.builds(
                Health,
                ready=COUNTS,
                starting=COUNTS,
                failed=st.integers(0, 8),
                crashing=st.integers(0, 8),
                unschedulable=st.integers(0, 8),
            )
        ),
        is_rolling_out=draw(st.booleans()),
        held_by=draw(st.sampled_from([(Reason.PAUSED, "spec.mode is Paused")])) if held else None,
        history=draw(histories()),
    )
