"""Wrong architectures, unknown fields, wrong accelerators: tables like `wrong_values`."""

import pytest

from tests.crd import definitions as crd

CUSTOM, CORRECTION = crd.example("accelerator")

SHAPES = [
    pytest.param({"parameters": 0}, "parameters", "greater than or equal to 1", id="no weights"),
    pytest.param({"layers": None}, "layers", "Required value", id="no layers"),
    pytest.param(
        {"activeParameters": 9 * 10**9},
        "activeParameters",
        "must be <= parameters",
        id="more active weights than weights",
    ),
    pytest.param(
        {"kvHeads": 64},
        "kvHeads",
        "must be <= attentionHeads (32), got 64",
        id="more key/value heads than heads",
    ),
    pytest.param(
        {"windowTokens": 4096},
        "windowTokens",
        "must be given together with",
        id="a window without its cache",
    ),
    pytest.param(
        {"experts": 8},
        "experts",
        "must be given together with",
        id="experts without their number per token",
    ),
    pytest.param(
        {"experts": 8, "expertsPerToken": 9, "expertParameters": 10**9},
        "expertsPerToken",
        "must be <= experts (8), got 9",
        id="more experts per token than experts",
    ),
    pytest.param(
        {"experts": 8, "expertsPerToken": 2, "expertParameters": 10**12},
        "expertParameters",
        "must be <= parameters",
        id="more weights in experts than weights",
    ),
    pytest.param({"attention": "MLA"}, "attention", "supported values", id="an unknown attention"),
    pytest.param(
        {"parameters": 8.03e9 + 0.5},
        "parameters",
        "must be of type int",
        id="a fraction of a weight",
    ),
]

STRICT = [
    pytest.param("replicas", 3, id="a field of another kind"),
    pytest.param("minreplicas", 3, id="wrong case"),
    pytest.param("scaleTargetRef.namespace", "other", id="another namespace"),
    pytest.param("objectives[0].value", "1s", id="inside a list"),
    pytest.param("metrics.url", "http://prometheus:9090", id="a URL"),
    pytest.param("metrics.query", "up", id="PromQL"),
    pytest.param("behavior.scaleUp.tolerance", "0.1", id="a field that the HPA has and we do not"),
]

PROFILES = [
    pytest.param(CUSTOM, "usdPerHour", 3.2, "must be of type string", id="a price as a float"),
    pytest.param(CUSTOM, "usdPerHour", "-1", "should match", id="a negative price"),
    pytest.param(CUSTOM, "usdPerHour", "1,50", "should match", id="a decimal comma"),
    pytest.param(CUSTOM, "memoryGigabytes", 0, "greater than or equal to 1", id="no memory"),
    pytest.param(CUSTOM, "memoryGigabytes", None, "must be complete", id="memory left out"),
    pytest.param(
        CUSTOM, "efficiency.computePercent", 101, "less than or equal to 100", id="more than all"
    ),
    pytest.param(
        CUSTOM, "products", ["a b"], "should match", id="a product that is no label value"
    ),
    pytest.param(CUSTOM, "products", ["a", "a"], "Duplicate value", id="a product twice"),
    pytest.param(
        CORRECTION, "usdPerHour", None, "must be more than corrects", id="a correction of nothing"
    ),
]

YAML_TRAPS = [
    pytest.param("mode: Auto", "mode: no", "spec.mode", id="no is a boolean"),
    pytest.param("target: 500ms", "target: 1e3", "spec.objectives[0].target", id="1e3 is a number"),
    pytest.param(
        "target: 500ms", "target: 0x10", "spec.objectives[0].target", id="0x10 is a number"
    ),
    pytest.param("maxReplicas: 20", "maxReplicas: 1e9", "spec.maxReplicas", id="a billion"),
    pytest.param("maxReplicas: 20", "maxReplicas: 2_0.5", "spec.maxReplicas", id="underscores"),
    pytest.param("maxReplicas: 20", "maxReplicas: ~", "spec.maxReplicas", id="a tilde is null"),
    pytest.param("maxReplicas: 20", "maxReplicas: .inf", "spec.maxReplicas", id="infinity"),
    pytest.param("maxReplicas: 20", "maxReplicas: '20'", "spec.maxReplicas", id="quoted number"),
    pytest.param("name: H100-SXM", "name: on", "spec.accelerator.name", id="on is a boolean"),
    pytest.param(
        "expertParallel: false",
        "expertParallel: 0",
        "spec.engine.expertParallel",
        id="0 is no boolean",
    ),
]
