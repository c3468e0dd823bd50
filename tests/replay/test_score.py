"""The score of a run, on runs small enough to judge by hand."""

import math

import numpy as np
import pytest

from fleetline.model.objective import Metric, Objective
from fleetline.replay.score import score, serving_replicas, windows_met, worst_drain_s
from sim_cluster.serving.lives import Ending, ReplicaLife
from sim_cluster.serving.results import RequestResults

NAN = math.nan


def results(
    t_s: list[float],
    ttft_s: list[float],
    *,
    tpot_s: float = 0.02,
    e2e_s: float = 2.0,
    waiting_s: float = 0.01,
) -> RequestResults:
    first = np.array(ttft_s)
    count = first.size
    whole = np.where(np.isnan(first), NAN, e2e_s)
    return RequestResults(
        t_s=np.array(t_s),
        prompt_tokens=np.full(count, 10, np.int32),
        output_tokens=np.full(count, 10, np.int32),
        waiting_s=np.full(count, waiting_s),
        ttft_s=first,
        tpot_s=np.full(count, tpot_s),
        e2e_s=whole,
        replica=np.zeros(count, np.int32),
        preemptions=np.zeros(count, np.int32),
    )


TTFT = Objective(metric=Metric.TIME_TO_FIRST_TOKEN, percentile=90, target_s=1.0)
E2E = Objective(metric=Metric.END_TO_END, percentile=50, target_s=3.0)


def test_a_window_holds_if_the_share_reaches_the_percentile() -> None:
    # ten in the first window, one of them late: 90 % is enough; nine of the second, one late: not
    seen = results(
        [float(t) for t in range(10)] + [300.0 + t for t in range(9)],
        [0.5] * 9 + [2.0] + [0.5] * 8 + [2.0],
    )

    assert windows_met(seen, [TTFT]).tolist() == [True, False]


def test_a_window_without_arrivals_does_not_count() -> None:
    assert windows_met(results([0.0, 900.0], [0.5, 0.5]), [TTFT]).tolist() == [True, True]


def test_an_unfinished_request_has_missed_everything() -> None:
    seen = results([0.0, 1.0], [0.5, NAN])

    assert windows_met(seen, [TTFT]).tolist() == [False]


def test_every_objective_has_to_hold() -> None:
    seen = results([0.0], [0.5], e2e_s=5.0)

    assert windows_met(seen, [TTFT]).tolist() == [True]
    assert windows_met(seen, [TTFT, E2E]).tolist() == [False]


def test_an_answer_of_one_token_has_no_time_per_token_to_miss() -> None:
    seen = results([0.0], [0.5], tpot_s=NAN)
    objective = Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=0.01)

    assert windows_met(seen, [objective]).tolist() == [True]


def life(number: int, created: float, ready: float, *, drain: float = NAN, end: float = NAN):
    return ReplicaLife(
        number=number,
        requested_s=created,
        created_s=created,
        ready_s=ready,
        drain_began_s=drain,
        ended_s=end,
        ending=None if math.isnan(end) else Ending.DRAINED,
    )


def test_gpu_hours_run_from_creation_to_the_end_of_drain() -> None:
    lives = (life(0, 0.0, 0.0), life(1, 600.0, 900.0, drain=3000.0, end=4200.0))
    judged = score(
        results([0.0], [0.5]),
        lives,
        [TTFT],
        until_s=3600.0,
        accelerators=4,
        scale_actions=2,
        price_usd_per_hour=1.5,
    )

    # one hour, and 600 s to 4200 s although the trace ends at 3600 s
    assert judged.replica_hours == pytest.approx(2.0)
    assert judged.gpu_hours == pytest.approx(8.0)
    assert judged.cost_usd == pytest.approx(12.0)


def test_a_draining_replica_serves_no_new_requests() -> None:
    lives = (life(0, 0.0, 0.0), life(1, 0.0, 10.0, drain=20.0, end=30.0))

    assert serving_replicas(lives, np.array([5.0, 10.0, 20.0, 40.0])).tolist() == [1, 2, 1, 1]


def test_the_worst_drain_is_the_longest_stretch_with_more_waiting_than_replicas() -> None:
    # two wait from t = 0 and 1 until 42 s behind one replica: at the marks 5, 10, ... 40
    seen = results([0.0, 1.0], [50.0, 50.0], waiting_s=41.5)

    assert worst_drain_s(seen, (life(0, 0.0, 0.0),), 100.0) == 40.0
