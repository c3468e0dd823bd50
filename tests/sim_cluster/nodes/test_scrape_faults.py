"""Metrics of a pod that are wrong on purpose: frozen, without values, in part."""

import math

from sim_cluster.nodes.faults import ScrapeFault
from tests.sim_cluster.nodes.replicas import a_replica, after_load, types_in, values_of


def test_a_frozen_exposition_does_not_move() -> None:
    replica = a_replica()
    replica.begin_fault(ScrapeFault.FROZEN)

    after_load(replica)

    assert values_of(replica.metrics_text())["vllm:generation_tokens_total"] == 0


def test_a_nan_exposition_parses_and_holds_nothing_else() -> None:
    replica = a_replica()
    replica.begin_fault(ScrapeFault.NAN)

    samples = values_of(replica.metrics_text())

    assert len(samples) > 40
    assert all(math.isnan(value) for value in samples.values())


def test_missing_families_leave_the_others_alone() -> None:
    replica = a_replica()
    replica.begin_fault(ScrapeFault.MISSING, ["vllm:num_requests_waiting"])

    names = types_in(replica.metrics_text())

    assert "vllm:num_requests_waiting" not in names
    assert "vllm:num_requests_running" in names


def test_a_healed_exposition_is_whole_again() -> None:
    replica = a_replica()
    replica.begin_fault(ScrapeFault.FROZEN)
    after_load(replica)

    replica.begin_fault(ScrapeFault.NONE)

    assert values_of(replica.metrics_text())["vllm:generation_tokens_total"] == 2000
