"""
The search for a ceiling. Laws:

1. where it is looked first does not change what is found, in one question or in some of many;
2. the sketch is near what is found, and between nothing and the full batch.
"""

import numpy as np
import pytest

from fleetline.model.bounds import Bounds, Question
from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.objective import Metric, Objective
from fleetline.model.search import SEEN, Found, search, search_around
from fleetline.model.sketch import sketch
from fleetline.model.slots import capacity_per_s
from fleetline.model.workload import TokenLengths, Workload
from tests.model.deployments import CHAT, FIRST_TOKEN, PER_TOKEN, replica

CODE = Workload(lengths=TokenLengths.evenly(4000.0, 60.0), dispersion=2.5)
STEADY = Workload(lengths=TokenLengths.fixed(500, 100), dispersion=0.0)
MIXTURE = replica("qwen3-30b-a3b")
GAPS = Objective(metric=Metric.INTER_TOKEN_LATENCY, percentile=99, target_s=0.2)
WHOLE = Objective(metric=Metric.END_TO_END, percentile=90, target_s=8.0)

ALL = [
    Question(replica=replica(), workload=CHAT, objectives=(FIRST_TOKEN, PER_TOKEN)),
    Question(replica=MIXTURE, workload=CODE, objectives=(FIRST_TOKEN, WHOLE), replicas=16),
    Question(replica=replica(), workload=CODE, objectives=(GAPS,), replicas=4),
    Question(replica=MIXTURE, workload=STEADY, objectives=(WHOLE,), replicas=300),
]
NAMES = (
    "chat on one replica",
    "long prompts in bursts on many",
    "gaps between tokens",
    "capacity of a large pool",
)


def stack(questions: list[Question]) -> tuple[Lanes, Bounds, Array]:
    lanes = Lanes.of([(one.replica, one.workload, one.replicas) for one in questions])
    return lanes, Bounds.of(questions), capacity_per_s(lanes)


def rates_per_s(found: Found) -> Array:
    return np.asarray(np.exp(found.at[-SEEN]))


@pytest.mark.parametrize("question", ALL, ids=NAMES)
@pytest.mark.parametrize("factor", [1e-4, 0.1, 0.8, 3.0, 1e4])
def test_a_wrong_sketch_costs_looks_and_not_accuracy(question: Question, factor: float) -> None:
    lanes, bounds, capacity = stack([question])
    expected = sketch(lanes, bounds, capacity)

    found = search_around(lanes, bounds, capacity, factor * expected)

    right = search(lanes, bounds)
    assert rates_per_s(found) == pytest.approx(rates_per_s(right), rel=2e-3)
    assert found.missed == right.missed
    assert found.possible


def test_one_question_that_has_to_be_looked_at_again_leaves_the_others_as_they_are() -> None:
    lanes, bounds, capacity = stack(ALL)
    expected = sketch(lanes, bounds, capacity)
    expected[1] *= 0.1

    found = search_around(lanes, bounds, capacity, expected)

    others = [0, 2, 3]
    right = search(lanes, bounds)
    assert rates_per_s(found)[others] == pytest.approx(rates_per_s(right)[others], rel=1e-12)
    assert rates_per_s(found)[1] == pytest.approx(rates_per_s(right)[1], rel=2e-3)
    assert list(found.missed) == list(right.missed)


@pytest.mark.parametrize("question", ALL, ids=NAMES)
def test_the_sketch_is_near_the_ceiling(question: Question) -> None:
    lanes, bounds, capacity = stack([question])

    expected = sketch(lanes, bounds, capacity)

    assert np.log(expected[0]) == pytest.approx(search(lanes, bounds).at[-1], abs=0.5)


@pytest.mark.parametrize("output_tokens", [1.0, 2.0, 20_000.0])
@pytest.mark.parametrize("prompt_tokens", [1.0, 20_000.0])
@pytest.mark.parametrize("cached_share", [0.0, 1.0])
def test_the_sketch_of_extreme_lengths_is_between_nothing_and_the_full_batch(
    prompt_tokens: float, output_tokens: float, cached_share: float
) -> None:
    lengths = TokenLengths.of(
        np.array([prompt_tokens]),
        np.array([output_tokens]),
        cached_prompt_tokens=np.array([cached_share * prompt_tokens]),
    )
    workload = Workload(lengths=lengths, dispersion=20.0)
    objectives = (FIRST_TOKEN, PER_TOKEN, GAPS, WHOLE)
    lanes, bounds, capacity = stack(
        [Question(replica=replica(), workload=workload, objectives=objectives, replicas=3)]
    )

    expected = sketch(lanes, bounds, capacity)

    assert 0.0 < expected[0, 0] <= lanes.batch_limit[0, 0]


def test_an_objective_that_one_question_lacks_is_not_looked_at_for_it() -> None:
    lanes, bounds, capacity = stack(ALL[:2])

    expected = sketch(lanes, bounds, capacity)

    assert [expected[0, 0], expected[1, 0]] == pytest.approx(
        [float(sketch(*stack([one]))[0, 0]) for one in ALL[:2]]
    )
