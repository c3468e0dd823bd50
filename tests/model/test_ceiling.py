"""
The ceiling. Laws:

1. at the ceiling every objective holds, a little above it one does not; 2. a tighter objective
never raises it; 3. more bandwidth, and more replicas behind the router, never lower it;
4. many questions at once get the answers of one at a time.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetline.errors import ModelError
from fleetline.model.ceiling import Limit, Question, ceiling, ceilings
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import operate
from fleetline.model.workload import TokenLengths, Workload
from tests.model.deployments import CHAT, FIRST_TOKEN, PER_TOKEN, replica

H100 = replica()
BOTH = (FIRST_TOKEN, PER_TOKEN)
TARGETS_S = st.floats(0.02, 0.2)


def per_token(target_s: float) -> Objective:
    return Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=target_s)


def test_objectives_hold_at_the_ceiling_and_not_beyond() -> None:
    found = ceiling(H100, CHAT, BOTH)

    at = operate(H100, CHAT, 0.98 * found.rate_per_s)
    beyond = operate(H100, CHAT, 1.02 * found.rate_per_s)
    assert at.percentile_s(PER_TOKEN.metric, 95) <= PER_TOKEN.target_s
    assert beyond.percentile_s(PER_TOKEN.metric, 95) > PER_TOKEN.target_s
    assert found.limit is Limit.TIME_PER_OUTPUT_TOKEN


@given(TARGETS_S, TARGETS_S)
@settings(max_examples=30)
def test_a_tighter_objective_never_raises_the_ceiling(one: float, other: float) -> None:
    tight, loose = sorted((one, other))

    lower = ceiling(H100, CHAT, [per_token(tight)])
    higher = ceiling(H100, CHAT, [per_token(loose)])

    assert lower.rate_per_s <= higher.rate_per_s * (1 + 1e-3)


@given(st.floats(1.0, 3.0))
@settings(max_examples=15)
def test_more_bandwidth_never_lowers_the_ceiling(factor: float) -> None:
    hardware = H100.accelerator
    faster = replace(
        H100,
        accelerator=replace(
            hardware, bandwidth_bytes_per_s=factor * hardware.bandwidth_bytes_per_s
        ),
    )

    assert ceiling(faster, CHAT, BOTH).rate_per_s >= ceiling(H100, CHAT, BOTH).rate_per_s * (
        1 - 5e-3
    )


def test_replicas_behind_one_router_carry_more_each_and_most_for_long_prompts() -> None:
    code = Workload(lengths=TokenLengths.evenly(4000.0, 30.0, spread_share=0.9))
    objectives = [Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=0.4)]

    chat_rates = [ceiling(H100, CHAT, BOTH, replicas=n).rate_per_s for n in (1, 4, 16, 64)]
    code_rates = [ceiling(H100, code, objectives, replicas=n).rate_per_s for n in (1, 4, 16, 64)]

    assert chat_rates == pytest.approx(sorted(chat_rates), rel=1e-3)
    assert code_rates == pytest.approx(sorted(code_rates), rel=1e-3)
    assert chat_rates[-1] < 1.3 * chat_rates[0]
    assert code_rates[-1] > 1.3 * code_rates[0]


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        pytest.param({"max_sequences": 8}, Limit.SLOTS, id="few slots"),
        pytest.param({"memory_utilization": 0.25}, Limit.KV_CACHE, id="little memory"),
    ],
)
def test_what_ends_capacity_is_named(change: dict[str, Any], limit: Limit) -> None:
    patient = [Objective(metric=Metric.END_TO_END, target_s=1e6)]

    found = ceiling(replace(H100, **change), CHAT, patient)

    assert found.limit is limit
    assert found.rate_per_s < found.capacity_per_s


def test_prefill_is_named_where_prompts_are_long_and_answers_short() -> None:
    reading = Workload(lengths=TokenLengths.evenly(8000.0, 4.0))

    found = ceiling(H100, reading, [Objective(metric=Metric.END_TO_END, target_s=1e6)])

    assert found.limit is Limit.PREFILL_COMPUTE


@pytest.mark.parametrize(
    ("objective", "least_s"),
    [
        pytest.param(per_token(0.004), 0.006, id="below the time to read the weights"),
        pytest.param(
            Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=0.02),
            0.03,
            id="below the own prefill",
        ),
    ],
)
def test_an_objective_out_of_reach_is_named_with_the_nearest_target(
    objective: Objective, least_s: float
) -> None:
    found = ceiling(H100, CHAT, [objective])

    assert not found.is_attainable
    assert found.rate_per_s == 0.0
    assert str(objective) in found.because
    assert found.nearest_target_s is not None
    assert found.nearest_target_s > least_s
    near = replace(objective, target_s=1.2 * found.nearest_target_s)
    assert ceiling(H100, CHAT, [near]).is_attainable


def test_many_questions_at_once_get_the_answers_of_one_at_a_time() -> None:
    questions = [
        Question(replica=H100, workload=CHAT, objectives=BOTH, replicas=4),
        Question(replica=H100, workload=CHAT, objectives=(FIRST_TOKEN,)),
        Question(
            replica=replica("llama-3.1-70b", tensor=4),
            workload=Workload(lengths=TokenLengths.fixed(500, 100)),
            objectives=(PER_TOKEN, Objective(metric=Metric.END_TO_END, target_s=9.0)),
        ),
    ]

    together = ceilings(questions)

    singly = [
        ceiling(one.replica, one.workload, one.objectives, replicas=one.replicas)
        for one in questions
    ]
    assert [one.rate_per_s for one in together] == pytest.approx(
        [one.rate_per_s for one in singly], rel=1e-9
    )
    assert [one.limit for one in together] == [one.limit for one in singly]


def test_a_fleet_of_no_replicas_has_no_ceiling() -> None:
    with pytest.raises(ModelError, match="replicas must be >= 1"):
        ceiling(H100, CHAT, BOTH, replicas=0)
