"""Wrong values are refused by name, before anything is installed."""

import json

import pytest
import yaml

from tests.chart import rendering as chart

TYPOS = [
    pytest.param({"replicaCounts": 2}, "replicaCounts", id="at the top"),
    pytest.param({"image": {"repo": "x"}}, "repo", id="inside image"),
    pytest.param({"crds": {"install": True}}, "install", id="another chart's word"),
    pytest.param({"serviceMonitor": {"enable": True}}, "enable", id="enable"),
    pytest.param({"resources": {"limit": {}}}, "limit", id="inside resources"),
    pytest.param({"extraScaleTargets": [{"group": "x"}]}, "group", id="inside a list"),
    pytest.param({"prometheus": {"URL": "http://x"}}, "URL", id="wrong case"),
    pytest.param({"extraArgs": []}, "extraArgs", id="a value that only passes text through"),
]

WRONG = [
    pytest.param({"replicaCount": 3}, "replicaCount", id="three replicas"),
    pytest.param({"replicaCount": 0}, "replicaCount", id="no replica"),
    pytest.param({"replicaCount": "1"}, "replicaCount", id="a number in quotes"),
    pytest.param({"crds": {"keep": "yes"}}, "keep", id="a boolean in words"),
    pytest.param({"image": {"digest": "sha256:abc"}}, "digest", id="half a digest"),
    pytest.param({"image": {"repository": ""}}, "repository", id="no image"),
    pytest.param({"image": {"pullPolicy": "always"}}, "pullPolicy", id="wrong case"),
    pytest.param({"prometheus": {"url": "prometheus:9090"}}, "url", id="a URL without scheme"),
    pytest.param({"prometheus": {"url": "file:///etc/passwd"}}, "url", id="a file"),
    pytest.param({"prometheus": {"url": ""}}, "url", id="no URL"),
    pytest.param({"syncPeriodSeconds": 0}, "syncPeriodSeconds", id="no period"),
    pytest.param({"syncPeriodSeconds": 1.5}, "syncPeriodSeconds", id="a fraction"),
    pytest.param({"logLevel": "INFO"}, "logLevel", id="a level in capitals"),
    pytest.param({"watchNamespaces": ["Chat"]}, "watchNamespaces", id="no namespace's name"),
    pytest.param({"watchNamespaces": ["a", "a"]}, "watchNamespaces", id="a namespace twice"),
    pytest.param({"watchNamespaces": "chat"}, "watchNamespaces", id="a word for a list"),
    pytest.param(
        {"extraScaleTargets": [{"apiGroup": "*", "resource": "*"}]}, "apiGroup", id="a wildcard"
    ),
    pytest.param(
        {"extraScaleTargets": [{"apiGroup": "apps", "resource": "deployments/scale"}]},
        "resource",
        id="a subresource",
    ),
    pytest.param({"networkPolicy": {"egressPorts": [0]}}, "egressPorts", id="a port that is none"),
    pytest.param({"serviceMonitor": {"interval": "15"}}, "interval", id="no unit"),
    pytest.param({"resources": {"limits": {"memory": "lots"}}}, "memory", id="no quantity"),
    pytest.param(
        {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        "podMonitor",
        id="both monitors: every series twice",
    ),
    pytest.param(
        {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}},
        "service",
        id="a monitor without its service",
    ),
]


@pytest.mark.parametrize(("values", "said"), TYPOS)
def test_a_typo_is_an_error_and_not_a_silence(values, said):
    with pytest.raises(chart.RenderError, match=f"'{said}' not allowed"):
        chart.render(values)


@pytest.mark.parametrize(("values", "said"), WRONG)
def test_a_wrong_value_is_refused_by_name(values, said):
    with pytest.raises(chart.RenderError, match=f"/{said}"):
        chart.render(values)


def test_the_schema_knows_exactly_the_values_there_are():
    schema = json.loads((chart.CHART / "values.schema.json").read_text("utf-8"))
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text("utf-8"))

    assert schema["properties"].keys() - {"global"} == values.keys()
    assert list(open_objects(schema["properties"], values)) == []


def open_objects(properties, values):
    """Objects of fixed shape that would let a typo pass, or whose fields differ from the values."""
    for name, value in values.items():
        schema = properties[name]
        if isinstance(value, dict) and "properties" in schema:
            if schema["additionalProperties"] or value.keys() - schema["properties"].keys():
                yield name
            yield from open_objects(schema["properties"], value)
