"""ServingFleet JSON to a fleet: understood completely, or refused with the field and the value."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters.manifest import parse
from fleetline.control.fleet import Mode
from fleetline.errors import FleetlineError, ManifestError
from fleetline.model.objective import Metric

EXAMPLES = Path(__file__).parents[2] / "crds" / "examples"

MINIMAL: dict[str, Any] = {
    "metadata": {
        "namespace": "default",
        "name": "chat",
        "uid": "u",
        "generation": 3,
        "creationTimestamp": "2026-11-30T08:00:00Z",
    },
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "chat"},
        "objectives": [{"metric": "TimeToFirstToken", "target": "500ms"}],
        "maxReplicas": 20,
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    body = copy.deepcopy(MINIMAL)
    *parents, last = path.split(".")
    place: Any = body["spec"]
    for name in parents:
        place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
    place[last] = value
    return body


def test_the_minimal_fleet_is_enough() -> None:
    fleet = parse(MINIMAL).fleet

    assert (fleet.min_replicas, fleet.max_replicas, fleet.mode) == (1, 20, Mode.AUTO)
    assert fleet.objectives[0].metric is Metric.TIME_TO_FIRST_TOKEN
    assert (fleet.objectives[0].percentile, fleet.objectives[0].target_s) == (95, 0.5)
    assert fleet.created_s == 1_796_025_600.0


def test_the_full_example_is_understood() -> None:
    body = yaml.safe_load((EXAMPLES / "chat.yaml").read_text("utf-8"))

    one = parse(body)

    assert len(one.fleet.objectives) == 3
    assert one.replica.engine.max_sequences == 256
    assert one.metrics.arrivals_counter == "llm_d_epp_request_total"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("minReplicas", 21, r"spec.minReplicas must be <= spec.maxReplicas \(20\), got 21"),
        ("minReplicas", -1, "spec.minReplicas must be >= 1, got -1"),
        ("maxReplicas", 2**31, "spec.maxReplicas must be <= 10000"),
        ("maxReplicas", "20", "spec.maxReplicas must be an integer, got '20'"),
        ("maxReplicas", 2.5, "spec.maxReplicas must be an integer, got 2.5"),
        ("maxReplicas", True, "spec.maxReplicas must be an integer, got True"),
        ("maxReplicas", None, "spec.maxReplicas must be given"),
        ("mode", "auto", "spec.mode must be one of Auto, Recommend, Paused, got 'auto'"),
        ("mode", False, "spec.mode must be one of Auto, Recommend, Paused, got False"),
        ("objectives", [], "spec.objectives must have at least 1 item"),
        ("objectives.0.target", "0s", r"spec.objectives\[0\].target must be a duration above zero"),
        ("objectives.0.target", "500", "must be a duration above zero and at most 24h, .* got 500"),
        ("objectives.0.target", "25h", "at most 24h"),
        ("objectives.0.percentile", 100, r"spec.objectives\[0\].percentile must be <= 99"),
        ("objectives.0.metric", "TTFT", "must be one of TimeToFirstToken"),
        ("scaleTargetRef.name", "a/b", "spec.scaleTargetRef.name must match"),
        ("scaleTargetRef.name", "x" * 300, "must have 1 to 253 characters"),
        ("scaleTargetRef.kind", "DaemonSet", "must be a kind that has a scale subresource"),
        ("accelerator", {"name": ""}, "spec.accelerator.name must have 1 to 63"),
        ("model", {}, "spec.model must be exactly one of name and architecture, got neither"),
        ("engine", {"maxSequences": 512, "stepTokenBudget": 256}, "maxSequences must be <="),
        ("engine", {"type": "vllm"}, "spec.engine.type must be one of VLLM"),
        ("engine", [], "spec.engine must be an object"),
        ("metrics", {"modelLabel": "namespace"}, "a label that Fleetline does not use itself"),
        ("metrics", {"arrivals": {"source": "Gateway"}}, "counter must be given when source is"),
        ("behavior", {"scaleUp": {"policies": [{"type": "Pods"}]}}, "value must be given"),
        ("behavior", {"scaleUp": {"policies": []}}, "policies must have at least 1 item, got 0"),
        ("behavior", {"scaleDown": {"stabilizationWindowSeconds": 7200}}, "must be <= 3600"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(path: str, value: Any, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        parse(changed(path, value))


def test_two_objectives_for_one_percentile_are_refused() -> None:
    twice = [{"metric": "EndToEnd", "target": "1s"}, {"metric": "EndToEnd", "target": "2s"}]

    with pytest.raises(ManifestError, match="unique by metric and percentile"):
        parse(changed("objectives", twice))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [
        *("scaleTargetRef", "model", "engine", "accelerator", "objectives", "minReplicas"),
        *("maxReplicas", "mode", "behavior", "metrics", "queueDrainSeconds"),
    ]
)


@given(FIELDS, JSON)
def test_any_json_is_understood_or_refused(name: str, value: Any) -> None:
    with contextlib.suppress(FleetlineError):
        parse(changed(name, value))
