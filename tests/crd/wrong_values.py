"""Wrong values of a fleet, each with what the API server says to it."""

import pytest

from tests.crd import definitions as crd

FLEET = crd.example("chat")[0]
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
