"""Which knob moves the ceiling, and where the calm and the congested state meet."""

import math
from dataclasses import replace

import pytest

from fleetline.model.branches import branches
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import capacity_per_s
from fleetline.model.sensitivity import sensitivity
from fleetline.model.workload import TokenLengths, Workload
from tests.model.deployments import CHAT, PER_TOKEN, replica

H100 = replica()
TIGHT = replace(H100, memory_utilization=0.3)
LONG_ANSWERS = Workload(lengths=TokenLengths.evenly(200.0, 1500.0))


def test_a_bound_on_tpot_is_moved_by_itself_and_by_bandwidth_but_not_by_slots() -> None:
    found = sensitivity(H100, CHAT, [PER_TOKEN])

    assert found[str(PER_TOKEN)] > 0.05
    assert found["bandwidth"] > 0.05
    assert found["slots"] == pytest.approx(0.0, abs=0.05)
    assert found["output tokens"] < 0


def test_a_bound_by_memory_is_moved_by_memory() -> None:
    patient = [Objective(metric=Metric.END_TO_END, target_s=1e5)]

    found = sensitivity(TIGHT, LONG_ANSWERS, patient)

    assert found["memory"] > 0.5
    assert found["slots"] == pytest.approx(0.0, abs=0.05)


def test_branches_meet_at_capacity() -> None:
    capacity = capacity_per_s(H100, CHAT)

    calm, gone = branches(H100, CHAT, 0.5 * capacity), branches(H100, CHAT, 1.01 * capacity)

    assert calm.meeting_rate_per_s == pytest.approx(capacity)
    assert math.isfinite(calm.stable_requests)
    assert not calm.is_metastable
    assert gone.stable_requests == math.inf


def test_an_overflowing_cache_serves_less_than_a_calm_replica_and_stays_so() -> None:
    found = branches(TIGHT, LONG_ANSWERS, 0.99 * capacity_per_s(TIGHT, LONG_ANSWERS))

    assert found.congested_rate_per_s < found.meeting_rate_per_s
    assert found.is_metastable
    assert found.stable_requests < found.unstable_requests
