"""
Wrong specs are refused by the API server itself, with a message that names the field.

The same table runs against every backend: what the in-memory API says, the real one says too.
Messages are compared by their telling part; wording around it belongs to the API server.
"""

import json
from collections.abc import Callable

import pytest

from fleetline.adapters import manifest
from fleetline.errors import ManifestError
from tests.crd import definitions as crd

Kubectl = Callable[..., tuple[int, str]]
FLEET = crd.example("chat")[0]
CUSTOM, CORRECTION = crd.example("accelerator")
ARCHITECTURE = {
    "layers": 32,
    "hiddenSize": 4096,
    "parameters": 8_030_261_248,
    "attentionHeads": 32,
    "kvHeads": 8,
    "headSize": 128,
    "vocabularySize": 128_256,
    "kvValuesPerToken": 65_536,
}
MEGABYTE = "x" * 1_000_000


def case(name, path, value, *said):
    """One wrong value at a path (`a.b[0].c`) of the full example, and what the refusal says."""
    return pytest.param(path, value, said, id=name)


def number(path, *, low, high):
    """The ways in which an integer can be wrong, and what the API server says to each."""
    where = f"spec.{path}"
    return [
        case(f"{path} below", path, low - 1, where, f"greater than or equal to {low}"),
        case(f"{path} above", path, high + 1, where, f"less than or equal to {high}"),
        case(f"{path} negative", path, -5, where, f"greater than or equal to {low}"),
        case(f"{path} past 32 bits", path, 2**31, where, f"less than or equal to {high}"),
        case(f"{path} as a string", path, str(low), where, "must be of type integer"),
        case(f"{path} as a fraction", path, low + 0.5, where, "must be of type int"),
        case(f"{path} as a list", path, [low], where, "must be of type integer"),
    ]


def choice(path, wrong, *allowed):
    """The ways in which a word can be wrong: unknown, wrong case, a boolean (YAML 1.1's `no`)."""
    where = f"spec.{path}"
    said = [f'"{word}"' for word in allowed]
    return [
        case(f"{path} unknown", path, wrong, where, "supported values", *said),
        case(f"{path} in lower case", path, allowed[0].lower(), where, "supported values", *said),
        case(f"{path} empty", path, "", where, "supported values", *said),
        case(f"{path} as a boolean", path, False, where, "must be of type string"),
    ]


TARGET = "objectives[0].target"
TARGET_RULE = "spec.objectives[].target must be a duration above zero and at most 24h"


def duration(name, value):
    return case(
        f"target {name}", TARGET, value, "spec.objectives[0].target", TARGET_RULE, f"got {value}"
    )


def names(path, *, wrong, match="should match"):
    return [case(f"{path} {value!r}", path, value, f"spec.{path}", match) for value in wrong]


DNS_TRAPS = ["Chat", "chat_1", "-chat", "chat-", "other/chat", "chät", "a b", "chat.", "chat\n"]
QUERY_TRAPS = [
    'x"} or up{a="',
    "http://prometheus:9090/api",
    "/etc/passwd",
    "../chat",
    "sum(rate(x[5m]))",
    "a\nb",
    "{}",
]

WRONG = [
    *number("minReplicas", low=1, high=10_000),
    *number("maxReplicas", low=1, high=10_000),
    *number("objectives[0].percentile", low=50, high=99),
    *number("queueDrainSeconds", low=1, high=86_400),
    *number("behavior.scaleDown.stabilizationWindowSeconds", low=0, high=3_600),
    *number("behavior.scaleUp.policies[0].value", low=1, high=1_000_000),
    *number("behavior.scaleUp.policies[0].periodSeconds", low=1, high=1_800),
    *number("engine.maxSequences", low=1, high=100_000),
    *number("engine.memoryUtilizationPercent", low=1, high=100),
    *number("engine.tokensPerStepPercent", low=100, high=10_000),
    *choice("mode", "DryRun", "Auto", "Recommend", "Paused"),
    *choice("objectives[0].metric", "Ttft", "TimeToFirstToken", "EndToEnd"),
    *choice("engine.type", "Ollama", "VLLM", "SGLang"),
    *choice("engine.weightPrecision", "FP6", "FP32", "BF16"),
    *choice("behavior.scaleUp.selectPolicy", "Most", "Max", "Min", "Disabled"),
    *choice("behavior.scaleUp.policies[0].type", "Nodes", "Pods", "Percent"),
    *choice("metrics.arrivals.source", "Router", "Engine", "Gateway"),
    duration("zero", "0s"),
    duration("zero in parts", "0h0m0s0ms"),
    duration("negative", "-5s"),
    duration("fractional", "0.5s"),
    duration("without unit", "500"),
    duration("in a unit of microseconds", "500us"),
    duration("with a space", "500 ms"),
    duration("in capitals", "500MS"),
    duration("above a day", "24h1ms"),
    duration("huge", "99999999h"),
    duration("sexagesimal", "1:30"),
    duration("a word", "fast"),
    case("target as a number", TARGET, 500, "spec.objectives[0].target", "must be of type string"),
    case("target empty", TARGET, "", "spec.objectives[0].target", "at least 2 chars"),
    case("target of a megabyte", TARGET, MEGABYTE, "spec.objectives[0].target", "Too long"),
    case(
        "more minimum than maximum",
        "minReplicas",
        21,
        "spec.minReplicas",
        "spec.minReplicas must be <= spec.maxReplicas (20), got 21",
    ),
    case("no objectives", "objectives", [], "spec.objectives", "at least 1 item"),
    case("objectives null", "objectives", None, "spec.objectives", "Required value"),
    case(
        "nine objectives",
        "objectives",
        [{"metric": "EndToEnd", "percentile": 90 + n, "target": "9s"} for n in range(9)],
        "spec.objectives",
        "must have at most 8 items",
    ),
    case(
        "the same objective twice",
        "objectives",
        [
            {"metric": "EndToEnd", "percentile": 95, "target": "9s"},
            {"metric": "EndToEnd", "target": "8s"},
        ],
        "spec.objectives[1]",
        "Duplicate value",
        "spec.objectives must be unique by metric and percentile",
    ),
    case("no maximum", "maxReplicas", None, "spec.maxReplicas", "Required value"),
    case("mode null in a list", "mode", ["Auto"], "spec.mode", "must be of type string"),
    case("no target", "scaleTargetRef", None, "spec.scaleTargetRef", "Required value"),
    case("target without a name", "scaleTargetRef.name", None, "scaleTargetRef.name", "Required"),
    case("target with an empty name", "scaleTargetRef.name", "", "scaleTargetRef.name", "at least"),
    case("name of 300", "scaleTargetRef.name", "a" * 300, "scaleTargetRef.name", "Too long"),
    case("name of a megabyte", "scaleTargetRef.name", MEGABYTE, "scaleTargetRef.name", "Too long"),
    *names("scaleTargetRef.name", wrong=DNS_TRAPS),
    *names("scaleTargetRef.kind", wrong=["deployment", "Deploy/ment", "Déploiement", "D-1"]),
    *names("scaleTargetRef.apiVersion", wrong=["apps", "apps/1", "APPS/v1", "apps/v1/x", "v0"]),
    case(
        "a kind that cannot scale",
        "scaleTargetRef.kind",
        "DaemonSet",
        "spec.scaleTargetRef.kind must be a kind that has a scale subresource",
        "got DaemonSet of apps/v1",
    ),
    *names("model.name", wrong=[*QUERY_TRAPS, "-x", "a/b/c"]),
    *names("accelerator.name", wrong=["H100 SXM", "H100/SXM", "-H100", "H100-"]),
    *names("metrics.modelName", wrong=QUERY_TRAPS),
    *names("metrics.modelLabel", wrong=["model-name", "0model", 'a="b"', "a.b"]),
    *names("metrics.arrivals.counter", wrong=[*QUERY_TRAPS, "a-b", "x[5m]", "rate(x)"]),
    *names("metrics.arrivals.modelLabel", wrong=["model-name", "a b"]),
    case(
        "the label that keeps tenants apart",
        "metrics.modelLabel",
        "namespace",
        "spec.metrics.modelLabel must be a label that Fleetline does not use itself",
        "got namespace",
    ),
    case(
        "the metric's name as a label",
        "metrics.arrivals.modelLabel",
        "__name__",
        "spec.metrics.arrivals.modelLabel must be a label that Fleetline does not use itself",
    ),
    case(
        "a gateway without its counter",
        "metrics.arrivals.counter",
        None,
        "spec.metrics.arrivals.counter must be given when source is Gateway",
    ),
    case(
        "both a name and an architecture",
        "model.architecture",
        ARCHITECTURE,
        "spec.model must be exactly one of name and architecture, got both",
    ),
    case("neither", "model", {}, "spec.model must be exactly one of name and architecture"),
    case(
        "more slots than tokens in a step",
        "engine.stepTokenBudget",
        128,
        "spec.engine.maxSequences must be <= spec.engine.stepTokenBudget (128), got 256",
    ),
    case(
        "too many accelerators",
        "engine",
        {"tensorParallel": 64, "pipelineParallel": 64, "dataParallel": 2},
        "spec.engine must be <= 4096 accelerators per replica",
        "got 8192",
    ),
    case("a boolean in words", "engine.expertParallel", "no", "engine.expertParallel", "boolean"),
    case("no policies", "behavior.scaleUp.policies", [], "scaleUp.policies", "at least 1 item"),
    case(
        "a policy without a period",
        "behavior.scaleUp.policies",
        [{"type": "Pods", "value": 1}],
        "spec.behavior.scaleUp.policies[0].periodSeconds",
        "Required value",
    ),
    case(
        "a thousand policies",
        "behavior.scaleUp.policies",
        [{"type": "Pods", "value": 1, "periodSeconds": 1}] * 1000,
        "spec.behavior.scaleUp.policies",
        "must have at most 8 items",
    ),
]

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


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_where_it_stands(kubectl: Kubectl, path, value, said):
    code, output = kubectl.create(changed(FLEET, path, value))

    assert code == 1
    assert [part for part in said if part not in output] == [], output[:2000]


LENIENT = {"no policies"}
"""What the operator reads leniently: no policies are the default ones."""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(*wrong.values[:2], id=str(wrong.id))
        for wrong in WRONG
        if wrong.id not in LENIENT
    ],
)
def test_the_operator_refuses_it_too_for_objects_of_an_older_definition(path, value):
    with pytest.raises(ManifestError, match=" must ") as refusal:
        manifest.parse(changed(FLEET, path, value))

    assert str(refusal.value).startswith(f"spec.{path.split('.')[0].split('[')[0]}")


RULED = [
    pytest.param(*wrong.values, id=str(wrong.id))
    for wrong in WRONG
    if wrong.values[0] != TARGET
    and any(" must be " in part for part in wrong.values[2])
    and all(part.startswith(("spec.", "got ")) for part in wrong.values[2])
]


@pytest.mark.parametrize(("path", "value", "said"), RULED)
def test_operator_and_definition_say_the_same_about_a_broken_rule(path, value, said):
    with pytest.raises(ManifestError) as refusal:
        manifest.parse(changed(FLEET, path, value))

    assert [part for part in said if part not in str(refusal.value)] == []


@pytest.mark.parametrize(("fields", "field", "said"), SHAPES)
def test_the_operator_refuses_a_wrong_architecture_too(fields, field, said):
    model = {"architecture": drop_unset({**ARCHITECTURE, **fields})}

    with pytest.raises(ManifestError, match=rf"spec\.model\.architecture\.{field} must "):
        manifest.parse(changed(FLEET, "model", model))


@pytest.mark.parametrize(("fields", "field", "said"), SHAPES)
def test_a_wrong_architecture_is_refused(kubectl: Kubectl, fields, field, said):
    model = {"architecture": drop_unset({**ARCHITECTURE, **fields})}

    code, output = kubectl.create(changed(FLEET, "model", model))

    assert code == 1
    assert f"spec.model.architecture.{field}" in output
    assert said in output


def test_a_right_architecture_is_accepted(kubectl: Kubectl):
    experts = {"experts": 8, "expertsPerToken": 2, "expertParameters": 7 * 10**9}
    window = {"windowTokens": 4096, "windowKVValuesPerToken": 1024}
    model = {"architecture": {**ARCHITECTURE, **experts, **window}}

    code, output = kubectl.create(changed(FLEET, "model", model))

    assert code == 0, output


@pytest.mark.parametrize(("path", "value"), STRICT)
def test_an_unknown_field_is_refused_by_name(kubectl: Kubectl, path, value):
    code, output = kubectl.create(changed(FLEET, path, value))

    assert code == 1
    assert f'unknown field "spec.{path}"' in output


@pytest.mark.parametrize(("profile", "path", "value", "said"), PROFILES)
def test_a_wrong_accelerator_is_refused(kubectl: Kubectl, profile, path, value, said):
    code, output = kubectl.create(changed(profile, path, value))

    assert code == 1
    assert said in output


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


@pytest.mark.parametrize(("right", "wrong", "field"), YAML_TRAPS)
def test_what_yaml_makes_of_a_word_is_refused_where_it_stands(
    kubectl: Kubectl, right, wrong, field
):
    text = (crd.CRDS / "examples" / "chat.yaml").read_text("utf-8")
    assert text.count(right) >= 1

    code, output = kubectl.create(text.replace(right, wrong))

    assert code == 1
    assert field in output or "json: unsupported value: +Inf" in output


def test_nulls_count_as_absent_and_are_defaulted(kubectl: Kubectl):
    spec = {**FLEET["spec"], "mode": None, "model": None, "engine": {"maxSequences": None}}

    code, output = kubectl.create({**FLEET, "spec": spec})

    assert code == 0, output


def test_a_fleet_without_a_spec_is_refused(kubectl: Kubectl):
    code, output = kubectl.create({**FLEET, "spec": None})

    assert code == 1
    assert "spec: Required value" in output


def changed(document, path, value):
    """Return a copy whose spec has `value` at `path`; None takes the field away."""
    copied = json.loads(json.dumps(document))
    *parents, last = path.replace("[", ".[").split(".")
    place = copied["spec"]
    for step in parents:
        place = place[int(step[1:-1])] if step.startswith("[") else place.setdefault(step, {})
    if value is None:
        place.pop(last)
    else:
        place[last] = value
    return copied


def drop_unset(fields):
    return {name: value for name, value in fields.items() if value is not None}
