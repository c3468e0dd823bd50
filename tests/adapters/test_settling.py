"""When a status is written: structure at once, numbers only if they stay off."""

import pytest

from fleetline.adapters.settling import NO_DRIFT, Difference, difference, merge_patch

TOLD = {
    "currentReplicas": 3,
    "workload": {"arrivalRequestsPerSecond": "4.2", "runningRequests": "20"},
    "decision": {"reason": "Demand", "because": "4.2 req/s at 2.1 req/s per replica"},
    "conditions": [{"type": "Ready", "status": "True"}],
    "lastMetricsTime": "2026-01-01T00:00:00Z",
}


def changed(**fields: object) -> dict[str, object]:
    return {**TOLD, **fields}


def test_a_count_or_a_condition_is_structure() -> None:
    flipped = [{"type": "Ready", "status": "False"}]

    assert difference(TOLD, changed(currentReplicas=4)) is Difference.STRUCTURE
    assert difference(TOLD, changed(conditions=flipped)) is Difference.STRUCTURE


def test_near_numbers_are_no_difference() -> None:
    near = {"arrivalRequestsPerSecond": "4.9", "runningRequests": "24"}

    assert difference(TOLD, changed(workload=near)) is Difference.NONE


def test_far_numbers_are_told_apart_from_structure() -> None:
    far = {"arrivalRequestsPerSecond": "9.0", "runningRequests": "50"}

    assert difference(TOLD, changed(workload=far)) is Difference.NUMBERS


@pytest.mark.parametrize(
    ("period_s", "turns"), [(15.0, 9), (1.0, 121), (60.0, 8)], ids=["usual", "fast", "slow"]
)
def test_numbers_are_due_after_eight_turns_and_two_minutes(period_s: float, turns: int) -> None:
    drift, now_s = NO_DRIFT, 1000.0
    due = []
    for turn in range(turns):
        now_s = 1000.0 + turn * period_s
        drift = drift.after(Difference.NUMBERS, now_s)
        due.append(drift.is_due(now_s))

    assert due == [False] * (turns - 1) + [True]
    assert not drift.after(Difference.NONE, now_s).is_due(now_s)


def test_the_time_of_the_last_metrics_alone_is_not_written() -> None:
    assert difference(TOLD, changed(lastMetricsTime="2026-01-01T00:01:00Z")) is Difference.NONE


def test_a_patch_turns_the_old_status_into_the_new_one() -> None:
    new = {name: value for name, value in changed(currentReplicas=4).items() if name != "decision"}

    assert merge_patch(TOLD, new) == {"decision": None, "currentReplicas": 4}
