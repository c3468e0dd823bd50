"""
Laws of an explanation, for any status that the API lets in:

1. whatever is missing, there is an explanation, and its keys are the same;
2. what is not known is never shown as a number;
3. a fleet is well only if Ready and MetricsAvailable are both True.
"""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetline.entrypoints.explaining import explanation, is_negative

STATUS: dict[str, Any] = {
    "observedGeneration": 3,
    "currentReplicas": 4,
    "desiredReplicas": 5,
    "recommendedReplicas": 6,
    "readyReplicas": 4,
    "bindingObjective": "TimeToFirstToken p95 <= 0.5 s",
    "replica": {
        "ceilingRequestsPerSecond": "12.5",
        "limit": "TimeToFirstToken",
        "because": "p95 of the wait reaches 500 ms",
        "loopGain": "0.4",
        "utilization": "0.8",
        "prefillUtilization": "0.5",
        "concurrency": "50",
        "residenceTimeSeconds": "4",
        "queueDrainSeconds": "3.2",
        "kvCapacityTokens": 400000,
        "accelerators": 2,
        "calibration": [{"name": "Step", "value": "1.1", "samples": 12}],
    },
    "accelerators": [{"name": "H100-SXM", "usdPerHour": "3.5"}],
    "discovered": [{"name": "model.name", "value": "llama", "source": "Spec"}],
    "workload": {
        "arrivalRequestsPerSecond": "40",
        "forecastRequestsPerSecond": "55",
        "promptTokens": "800",
        "outputTokens": "200",
        "prefixHitShare": "0",
        "dispersion": "1.4",
        "waitingRequests": "6",
        "runningRequests": "154",
    },
    "objectives": [{"metric": "TimeToFirstToken", "percentile": 95, "targetSeconds": "0.5"}],
    "cost": {"usdPerHour": "28", "usdPerMillionTokens": "0.2", "usdPerMillionOutputTokens": "1"},
    "startupTime": {"p50Seconds": "60", "p90Seconds": "90", "samples": 7},
    "decision": {
        "reason": "ScaleUpLimit",
        "because": "behavior.scaleUp allows 5 now",
        "steps": [
            {"reason": "Demand", "replicas": 6, "because": "55 to be ready for"},
            {"reason": "ScaleUpLimit", "replicas": 5, "because": "behavior.scaleUp allows 5 now"},
        ],
    },
    "metricSources": [{"name": "running", "metric": "vllm:num_requests_running", "series": 4}],
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Scaling", "message": "fine"},
        {"type": "MetricsAvailable", "status": "True", "reason": "MetricsAvailable"},
        {"type": "ScalingLimited", "status": "True", "reason": "ScaleUpLimit", "message": "5"},
    ],
}

PATHS = [
    *((name,) for name in STATUS),
    *((name, inner) for name, one in STATUS.items() if isinstance(one, dict) for inner in one),
]


def body(status: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": "chat", "generation": 3},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}, "maxReplicas": 9},
        "status": status,
    }


def without(paths: set[tuple[str, ...]]) -> dict[str, Any]:
    """The status less some of its fields."""
    status = copy.deepcopy(STATUS)
    for path in sorted(paths, key=len, reverse=True):
        place = status if len(path) == 1 else status.get(path[0], {})
        place.pop(path[-1], None)
    return status


@given(st.sets(st.sampled_from(PATHS)))
def test_whatever_is_missing_there_is_an_explanation(paths: set[tuple[str, ...]]) -> None:
    told = explanation(body(without(paths)))

    assert told.keys() == explanation(body(STATUS)).keys()
    assert json.dumps(told)


@given(st.sets(st.sampled_from(PATHS)))
def test_what_is_not_known_is_never_another_number(paths: set[tuple[str, ...]]) -> None:
    whole = {link["name"]: link["value"] for link in explanation(body(STATUS))["chain"]}

    partial = {link["name"]: link["value"] for link in explanation(body(without(paths)))["chain"]}

    assert {name: whole[name] for name, value in partial.items() if value is not None} == {
        name: value for name, value in partial.items() if value is not None
    }


def test_the_laws_hold_on_a_worked_example() -> None:
    chain = {one["name"]: one for one in explanation(body(STATUS))["chain"]}

    # 12.5 req/s x 4 s = 50 requests; 160 requests / 40 req/s = 4 s; 1 / (1 - 0.4) = 1.67
    assert chain["in flight at it"]["value"] == 50
    assert chain["residence time now"]["value"] == 4
    assert round(chain["amplification"]["value"], 2) == 1.67
    assert chain["cost"]["formula"] == "4 replicas x 2 accelerators, 3.5 USD/h per H100-SXM"
    assert chain["utilization"]["formula"].endswith("40 / (4 x 12.5)")


def test_a_limit_that_holds_the_count_is_told_with_its_hint() -> None:
    (limited,) = explanation(body(STATUS))["conditions"]

    assert limited["condition"] == "ScalingLimited"
    assert "spec.behavior.scaleUp" in limited["hint"]


@given(
    st.sampled_from(["True", "False", "Unknown", None]),
    st.sampled_from(["True", "False", "Unknown", None]),
)
def test_only_ready_and_measured_is_well(ready: str | None, measured: str | None) -> None:
    given_ = {"Ready": ready, "MetricsAvailable": measured}
    conditions = [{"type": kind, "status": one} for kind, one in given_.items() if one]

    told = explanation(body({**STATUS, "conditions": conditions}))

    assert is_negative(told) != (ready == measured == "True")
