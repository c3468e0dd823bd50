"""
The router in virtual time, without an API server.

1. Little's law holds between what the router samples and what it measures of each request;
2. no request is ever dropped: it waits for a replica, or is sent again when one vanishes;
3. the engine's own metrics agree with the router's truth.
"""

import math
import statistics
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sim_cluster.nodes import catalog
from sim_cluster.nodes.engine_spec import read_engine
from sim_cluster.nodes.live_replica import LiveReplica
from sim_cluster.nodes.pool import ReplicaPool
from sim_cluster.traffic.arrivals import Arrival, draw_arrivals
from sim_cluster.traffic.endpoints import Endpoints
from sim_cluster.traffic.lengths import FixedLengths, LogNormalLengths
from sim_cluster.traffic.router import Router
from sim_cluster.traffic.shapes import Constant, Step
from sim_cluster.traffic.truth import RequestRecord, Truth

H100 = catalog.accelerator("H100-SXM").accelerator


@dataclass(frozen=True)
class Target:
    """An objective."""

    metric: str
    target_s: float
    percentile: int = 95


def a_pool(replicas: int, balance: str = "least-loaded") -> tuple[ReplicaPool, Router]:
    pool = ReplicaPool()
    router = Router(
        ("default", "chat"),
        pool,
        model_name="chat",
        endpoints=Endpoints(),
        balance=balance,
        seed=1,
    )
    pool.sources.append(router)
    names = [f"chat-{number}" for number in range(replicas)]
    for name in names:
        add_replica(pool, name)
    announce(router, *names)
    return pool, router


def add_replica(pool: ReplicaPool, name: str) -> None:
    container = {"name": "engine", "command": ["vllm", "serve", "llama-3.1-8b"]}
    spec = read_engine({"metadata": {}, "spec": {"containers": [container]}}, H100)
    assert spec is not None
    pool.add(LiveReplica(("default", name), spec, created_s=0.0))


def announce(router: Router, *names: str) -> None:
    """Let the Service have these ready pods."""
    endpoints = [{"targetRef": {"kind": "Pod", "name": name}, "conditions": {}} for name in names]
    metadata = {"name": "chat-abc", "namespace": "default"}
    assert isinstance(router.endpoints, Endpoints)
    router.endpoints.take(None, {"metadata": metadata, "endpoints": endpoints})


CHAT = LogNormalLengths(mean_prompt_tokens=800, mean_output_tokens=150)


def test_littles_law_holds_on_the_routers_truth() -> None:
    pool, router = a_pool(4)
    router.begin(draw_arrivals(Constant(level_per_s=20, duration_s=200), CHAT, seed=1))

    pool.advance(230.0)

    truth = router.truth
    mean_in_flight = statistics.fmean(one.in_flight for one in truth.samples if 20 < one.t_s < 200)
    settled = [one for one in truth.records if 20 < one.arrival_s < 200]
    arrival_rate_per_s = len(settled) / 180
    residence_time_s = statistics.fmean(one.residence_time_s for one in settled)
    assert mean_in_flight == pytest.approx(arrival_rate_per_s * residence_time_s, rel=0.05)


def test_every_request_is_answered() -> None:
    pool, router = a_pool(2)
    router.begin(draw_arrivals(Constant(level_per_s=10, duration_s=60), CHAT, seed=2))

    pool.advance(120.0)

    assert router.truth.arrivals == router.truth.finished > 500
    assert router.in_flight == 0


def test_requests_wait_at_the_gateway_until_a_replica_is_ready() -> None:
    pool, router = a_pool(0)
    router.begin([Arrival(0.0, 100, 10), Arrival(1.0, 100, 10)])
    pool.advance(10.0)
    held = router.held

    add_replica(pool, "late")
    announce(router, "late")
    pool.advance(20.0)

    assert held == 2
    assert router.truth.finished == 2
    assert router.truth.records[0].time_to_first_token_s > 10.0


def test_requests_of_a_vanished_replica_are_sent_again() -> None:
    pool, router = a_pool(2)
    router.begin(Arrival(number / 10, 500, 200) for number in range(40))
    pool.advance(3.0)

    pool.remove(("default", "chat-0"))
    pool.advance(60.0)

    moved = [one for one in router.truth.records if one.reroutes]
    assert moved
    assert {one.replica for one in moved} == {"chat-1"}
    assert router.truth.finished == 40


def test_a_draining_replica_gets_nothing_new_and_finishes_what_it_has() -> None:
    pool, router = a_pool(2)
    drained: list[tuple[str, str]] = []
    pool.on_drained.append(drained.append)
    router.begin(Arrival(number / 10, 500, 200) for number in range(40))
    pool.advance(2.0)
    had = {id(one) for one in router.truth.records if one.replica == "chat-0"}

    pool.drain(("default", "chat-0"))
    pool.advance(60.0)

    served = {id(one) for one in router.truth.records if one.replica == "chat-0"}
    assert served == had
    assert drained == [("default", "chat-0")]
    assert not any(one.reroutes for one in router.truth.records)


def test_a_request_beyond_the_kv_cache_is_refused_and_not_forgotten() -> None:
    pool, router = a_pool(1)
    router.begin([Arrival(0.0, 10_000_000, 10)])

    pool.advance(1.0)

    assert router.truth.records[0].refused
    assert router.truth.windows_met([Target("TimeToFirstToken", 1.0)]) == 0.0


@pytest.mark.parametrize("balance", ["least-loaded", "round-robin", "power-of-two"])
def test_every_balance_uses_all_replicas(balance: str) -> None:
    pool, router = a_pool(3, balance)
    router.begin(draw_arrivals(Constant(level_per_s=10, duration_s=30), CHAT, seed=3))

    pool.advance(60.0)

    shares = [
        sum(one.replica == f"chat-{number}" for one in router.truth.records) for number in range(3)
    ]
    assert min(shares) > 0.2 * sum(shares)


def test_the_engines_metrics_agree_with_the_truth() -> None:
    pool, router = a_pool(1)
    router.begin(draw_arrivals(Constant(level_per_s=5, duration_s=60), CHAT, seed=4))

    pool.advance(120.0)

    records = router.truth.records
    samples = samples_of(pool.replicas["default", "chat-0"].metrics_text())
    assert samples["vllm:generation_tokens_total"] == sum(one.output_tokens for one in records)
    assert samples["vllm:e2e_request_latency_seconds_sum"] == pytest.approx(
        sum(one.residence_time_s for one in records)
    )
    assert samples["vllm:time_to_first_token_seconds_sum"] == pytest.approx(
        sum(one.time_to_first_token_s for one in records)
    )


def test_the_gateway_counts_arrivals_before_anything_is_served() -> None:
    pool, router = a_pool(0)
    router.begin(Arrival(number / 10, 100, 10) for number in range(7))

    pool.advance(5.0)
    samples = samples_of(router.metrics_text())

    assert samples["llm_d_epp_request_total"] == 7
    assert samples["llm_d_epp_flow_control_queue_size"] == 7
    assert samples["llm_d_epp_ready_endpoints"] == 0


def test_a_window_is_met_if_every_percentile_holds_in_it() -> None:
    pool, router = a_pool(1)
    shape = Step(before_per_s=3, after_per_s=60, at_s=60, duration_s=90)
    router.begin(draw_arrivals(shape, FixedLengths(2000, 300), seed=5))

    pool.advance(400.0)

    calm_and_storm = router.truth.windows_met([Target("TimeToFirstToken", 1.0)], window_s=30)
    assert calm_and_storm == pytest.approx(2 / 3)


def test_unfinished_requests_count_as_missed() -> None:
    pool, router = a_pool(0)
    router.begin([Arrival(0.0, 100, 10)])

    pool.advance(5.0)

    assert router.truth.windows_met([Target("EndToEnd", math.inf)]) == 0.0
    assert router.truth.windows_met([Target("TimeToFirstToken", 1e6)]) == 0.0
    assert router.truth.goodput_share([Target("EndToEnd", 1e6)]) == 0.0


@pytest.mark.parametrize(("late", "met"), [(1, 1.0), (2, 0.0)])
def test_one_in_twenty_may_be_late_at_the_95th_percentile(late: int, met: float) -> None:
    truth = Truth()
    truth.records = [
        RequestRecord(
            float(number), 10, 1, first_token_s=number + wait_s, finished_s=number + wait_s
        )
        for number, wait_s in enumerate([9.0] * late + [0.5] * (20 - late))
    ]

    assert truth.windows_met([Target("TimeToFirstToken", 1.0)]) == met
    # answers of one token have no gaps: nothing of them can be late
    assert truth.windows_met([Target("TimePerOutputToken", 0.01)]) == 1.0


def test_nothing_is_known_of_no_traffic() -> None:
    _, router = a_pool(1)

    assert router.truth.windows_met([Target("EndToEnd", 1.0)]) is None
    assert router.truth.percentile_s("EndToEnd", 95) is None


def samples_of(text: str) -> dict[str, float]:
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
