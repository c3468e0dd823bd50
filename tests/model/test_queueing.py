"""Laws of queues that hold whatever serves, on textbook numbers."""

import math

import numpy as np
import pytest

from fleetline.errors import ModelError
from fleetline.model.first_token import queue_for_budget, service_s
from fleetline.model.lanes import Lanes
from fleetline.model.loop import open_loop
from fleetline.model.queueing import (
    amplification,
    drain_time_s,
    erlang_c,
    littles_law_concurrency,
    littles_law_residence_time_s,
    single_server_wait_s,
)
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload


def test_fifty_requests_a_second_for_twenty_seconds_are_a_thousand_in_flight() -> None:
    assert littles_law_concurrency(50.0, 20.0) == 1000.0
    assert littles_law_residence_time_s(1000.0, 50.0) == 20.0


def test_a_loop_gain_of_nine_tenths_amplifies_tenfold_and_of_one_without_bound() -> None:
    assert amplification(0.9) == pytest.approx(10.0)
    assert amplification(1.0) == math.inf


def test_a_backlog_drains_with_what_capacity_is_left() -> None:
    # 60 requests at 12 - 10 = 2 requests/s.
    assert drain_time_s(
        backlog_requests=60, capacity_per_s=12, arrival_rate_per_s=10
    ) == pytest.approx(30.0)
    assert drain_time_s(backlog_requests=1, capacity_per_s=10, arrival_rate_per_s=10) == math.inf
    assert drain_time_s(backlog_requests=0, capacity_per_s=1, arrival_rate_per_s=10) == 0.0


@pytest.mark.parametrize(
    ("servers", "load", "probability"),
    [
        pytest.param(1, 0.5, 0.5, id="one server: the utilization"),
        pytest.param(2, 1.0, 1 / 3, id="two servers at one half"),
        pytest.param(10, 8.0, 0.409, id="ten servers at 0.8"),
    ],
)
def test_erlang_c_has_its_textbook_values(servers: int, load: float, probability: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(probability, abs=5e-4)


def test_erlang_c_refuses_a_queue_without_steady_state() -> None:
    with pytest.raises(ModelError, match="offered_load must be"):
        erlang_c(2, 2.0)


def test_exponential_service_waits_twice_as_long_as_fixed_service() -> None:
    # Pollaczek and Khinchine at rho = 0.5, E[S] = 1: fixed 0.5, exponential 1.
    assert single_server_wait_s(0.5, 1.0, 1.0) == pytest.approx(0.5)
    assert single_server_wait_s(0.5, 1.0, 2.0) == pytest.approx(1.0)
    assert single_server_wait_s(1.0, 1.0, 1.0) == math.inf


def test_the_prefill_queue_of_long_prompts_is_that_of_a_single_server(
    chat_replica: Replica,
) -> None:
    lengths = TokenLengths.of(np.array([20_000.0, 60_000.0]), np.array([20.0, 20.0]))
    lanes = Lanes.of([(chat_replica, Workload(lengths=lengths), 1)])
    loop = open_loop(lanes, np.array([[0.4]]))
    rate = float(loop.arrival_rate_per_s[0, 0])

    alone = np.ones_like(loop.arrival_rate_per_s)
    wait_s = queue_for_budget(lanes, loop, alone, service_s(lanes, loop)).mean_s[0, 0]

    # Service: own work and the decode steps it is spread over, as in `service_s`.
    work_s = lanes.prefill_work_s[0, 0]
    share = lengths.prompt_tokens / (8192 - 0.4)
    taken_s = np.maximum(work_s - share * loop.gap_s[0, 0], 0) + share * loop.step_s[0, 0]
    expected_s = single_server_wait_s(rate, float(taken_s.mean()), float((taken_s**2).mean()))
    assert wait_s == pytest.approx(expected_s, rel=1e-6)
