"""Scores, on runs small enough to be counted by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from fleetline.errors import ModelError
from sim_cluster.serving.lives import ReplicaLife
from sim_cluster.serving.results import RequestResults
from sim_cluster.serving.score import backlogs, goodput, percentile_s, score, windows_met

NAN = math.nan


@dataclass(frozen=True)
class Objective:
    metric: str
    target_s: float
    percentile: int = 95


def run(t_s, ttft_s, tpot_s=None, e2e_s=None, waiting_s=None) -> RequestResults:
    ttft = np.array(ttft_s, dtype=float)
    size = ttft.size
    return RequestResults(
        t_s=np.array(t_s, dtype=float),
        prompt_tokens=np.full(size, 10, np.int32),
        output_tokens=np.full(size, 10, np.int32),
        waiting_s=np.zeros(size) if waiting_s is None else np.array(waiting_s, dtype=float),
        ttft_s=ttft,
        tpot_s=np.full(size, 0.01) if tpot_s is None else np.array(tpot_s, dtype=float),
        e2e_s=ttft + 1 if e2e_s is None else np.array(e2e_s, dtype=float),
        replica=np.zeros(size, np.int32),
        preemptions=np.zeros(size, np.int32),
    )


def test_a_window_is_met_when_its_percentile_is() -> None:
    # 20 requests a window: p95 by rank is the 19th; one slow request is allowed, two are not
    one_slow = [0.1] * 19 + [9.0]
    two_slow = [0.1] * 18 + [9.0] * 2
    seen = run(np.repeat([10.0, 310.0], 20), one_slow + two_slow)

    met = windows_met(seen, [Objective("TimeToFirstToken", 0.5)])

    assert met.tolist() == [True, False]


def test_windows_without_arrivals_do_not_count() -> None:
    seen = run([0.0, 3000.0], [0.1, 0.1])

    assert windows_met(seen, [Objective("TimeToFirstToken", 0.5)]).tolist() == [True, True]


def test_an_unfinished_request_misses_even_with_a_quick_first_token() -> None:
    seen = run([0.0, 1.0], [0.1, 0.1], e2e_s=[1.0, NAN])

    assert windows_met(seen, [Objective("TimeToFirstToken", 0.5)]).tolist() == [False]
    assert goodput(seen, []) == 0.5


def test_an_answer_of_one_token_has_no_pace_to_miss() -> None:
    seen = run([0.0, 1.0], [0.1, 0.1], tpot_s=[NAN, 0.02])
    objective = Objective("TimePerOutputToken", 0.05)

    assert windows_met(seen, [objective]).tolist() == [True]
    assert goodput(seen, [objective]) == 1.0


def test_goodput_wants_every_target_at_once() -> None:
    seen = run([0, 1, 2, 3], [0.1, 9, 0.1, 9], tpot_s=[0.01, 0.01, 0.9, 0.9])
    objectives = [Objective("TimeToFirstToken", 0.5), Objective("TimePerOutputToken", 0.05)]

    assert goodput(seen, objectives) == 0.25


def test_gpu_hours_run_from_creation_to_the_end_of_the_drain() -> None:
    lives = [
        ReplicaLife(number=0, requested_s=0.0, created_s=0.0, ready_s=0.0),
        ReplicaLife(number=1, requested_s=0.0, created_s=600.0, ended_s=2400.0),
        ReplicaLife(number=2, requested_s=0.0),
    ]

    seen = score(run([0.0], [0.1]), lives, [], end_s=3600.0, accelerators_per_replica=4)

    assert seen.replica_hours == 1.5
    assert seen.gpu_hours == 6.0


def test_the_backlog_is_who_waits_longer_than_a_second() -> None:
    # three wait from 0, 1, 2 to 10; a later one waits for a step only
    seen = run([0, 1, 2, 50], [10, 9, 8, 0.1], waiting_s=[10, 9, 8, 0.02])

    assert backlogs(seen, end_s=100.0) == (3, 10.0)


def test_a_percentile_by_rank_keeps_infinity_apart() -> None:
    values = np.array([1.0, 2.0, 3.0, math.inf])

    assert percentile_s(values, 75) == 3.0
    assert percentile_s(values, 95) == math.inf
    assert math.isnan(percentile_s(np.array([NAN]), 95))


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ModelError, match="metric must be one of TimeToFirstToken"):
        windows_met(run([0.0], [0.1]), [Objective("Latency", 1.0)])
