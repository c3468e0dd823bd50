"""Each example is accepted, whole: nothing is pruned, defaults are filled in, columns show it."""

import json

import pytest

from tests.crd import definitions as crd

OBJECTS = [
    pytest.param(document, id=f"{path.stem}/{document['metadata']['name']}")
    for path in crd.EXAMPLES
    for document in crd.example(path.stem)
]


@pytest.mark.parametrize("document", OBJECTS)
def test_nothing_of_an_example_is_lost(kubectl, namespace, document):
    stored = kubectl.applied(document, namespace)

    assert covers(stored["spec"], document["spec"])


def test_the_defaults_of_the_minimal_fleet_are_in_the_stored_object(kubectl, namespace):
    stored = kubectl.applied(crd.example("minimal")[0], namespace)["spec"]

    assert stored["scaleTargetRef"]["apiVersion"] == "apps/v1"
    assert (stored["minReplicas"], stored["queueDrainSeconds"], stored["mode"]) == (1, 60, "Auto")
    assert stored.keys() == {
        *("scaleTargetRef", "model", "objectives", "maxReplicas"),
        *("minReplicas", "queueDrainSeconds", "mode"),
    }


def test_the_columns_show_the_fleet_by_its_short_name(kubectl, namespace):
    kubectl.applied(crd.example("minimal")[0], namespace)

    _, output = kubectl("get", "sf", "--namespace", namespace)
    header, row = output.splitlines()

    assert header.split() == [
        "NAME",
        "TARGET",
        "MIN",
        "MAX",
        "CURRENT",
        "DESIRED",
        "READY",
        "REASON",
        "AGE",
    ]
    assert row.split()[:4] == ["chat", "chat", "1", "20"]


def test_a_status_in_full_is_stored_in_full_and_leaves_the_spec_alone(kubectl, namespace):
    before = kubectl.applied(crd.example("minimal")[0], namespace)
    status = filled(crd.schema("servingfleets")["properties"]["status"])
    patch = json.dumps({"status": status, "spec": {"maxReplicas": 1}})

    code, output = kubectl(
        *("patch", "sf", "chat", "--namespace", namespace, "--subresource", "status"),
        *("--type", "merge", "--patch", patch),
    )
    after = kubectl.json("get", "sf", "chat", "--namespace", namespace)

    assert code == 0, output
    assert after["status"] == status
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def test_the_wide_columns_answer_from_the_status(kubectl, namespace):
    kubectl.applied(crd.example("minimal")[0], namespace)
    status = {
        "currentReplicas": 4,
        "desiredReplicas": 5,
        "readyReplicas": 3,
        "bindingObjective": "TimeToFirstToken p95 <= 500ms",
        "replica": {"ceilingRequestsPerSecond": "4.25", "limit": "KVCache"},
        "decision": {"reason": "TooManyReplicas", "because": "maxReplicas is 5"},
        "conditions": [
            {
                "type": "MetricsAvailable",
                "status": "True",
                "reason": "Fresh",
                "message": "all series are fresh",
                "lastTransitionTime": "2026-11-30T09:00:00Z",
            }
        ],
    }
    patch = (
        "--subresource",
        "status",
        "--type",
        "merge",
        "--patch",
        json.dumps({"status": status}),
    )
    kubectl("patch", "sf", "chat", "--namespace", namespace, *patch)

    _, output = kubectl("get", "sf", "--namespace", namespace, "--output", "wide")
    header, row = output.splitlines()

    assert cell(header, row, "READY") == "3"
    assert cell(header, row, "REASON") == "TooManyReplicas"
    assert cell(header, row, "OBJECTIVE") == "TimeToFirstToken p95 <= 500ms"
    assert cell(header, row, "CEILING") == "4.25"
    assert cell(header, row, "LIMIT") == "KVCache"
    assert cell(header, row, "METRICS") == "True"


def test_explain_knows_every_field(kubectl):
    code, output = kubectl("explain", "servingfleet.spec.objectives.target")

    assert code == 0
    assert "the latency itself" in output.lower()


def test_there_is_no_scale_to_write(kubectl, namespace):
    kubectl.applied(crd.example("minimal")[0], namespace)

    code, _ = kubectl("scale", "sf/chat", "--replicas", "3", "--namespace", namespace)

    assert code == 1


def covers(stored, given):
    """Whether everything given is in what is stored; lists by position."""
    if isinstance(given, dict):
        return all(name in stored and covers(stored[name], value) for name, value in given.items())
    if isinstance(given, list):
        return len(stored) == len(given) and all(map(covers, stored, given))
    return stored == given


def filled(node):
    """A value for every field of a schema."""
    if node["type"] == "object":
        return {name: filled(field) for name, field in node["properties"].items()}
    if node["type"] == "array":
        return [filled(node["items"])]
    if "enum" in node:
        return node["enum"][0]
    if node.get("format") == "date-time":
        return "2026-11-30T09:00:00Z"
    return {"integer": 7, "boolean": True, "string": text(node)}[node["type"]]


def text(node):
    return "12.5" if "0-9" in node.get("pattern", "")[:8] else "Word"


def cell(header, row, column):
    """What a table shows under a column: up to the next header."""
    start = header.index(column)
    following = header[start:].split("   ", 1)
    end = (
        start
        + len(following[0])
        + (len(following[1]) - len(following[1].lstrip()) + 3 if len(following) > 1 else 999)
    )
    return row[start:end].strip()
