"""
The worked chain behind a ServingFleet's count, from its spec and status.

    arrivals -> forecast -> ceiling of a replica and its limit -> utilization -> loop gain
    -> residence time -> L = lambda W -> replicas -> cost

A status holds three digits; nothing is measured or modelled here a second time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from fleetline.entrypoints.condition_reasons import status_of, troubled
from fleetline.model.queueing import (
    amplification,
    littles_law_concurrency,
    littles_law_residence_time_s,
)
from fleetline.policy.decision import Reason

Json = Mapping[str, Any]
MEANINGS: Final[Mapping[str, str]] = {str(one): one.description for one in Reason}
"""What each reason of a decision says."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain; a value of None is not known."""

    name: str
    formula: str
    value: float | int | str | None
    unit: str = ""


def explanation(body: Json) -> dict[str, Any]:
    """Everything that answers "why this number?", as JSON of documented keys."""
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    generation, seen = metadata.get("generation"), status.get("observedGeneration")
    return {
        "fleet": f"{metadata['namespace']}/{metadata['name']}",
        "target": " ".join(
            str(spec.get("scaleTargetRef", {}).get(k, "")) for k in ("kind", "name")
        ),
        "mode": spec.get("mode", "Auto"),
        "ready": status_of(status, "Ready"),
        "metrics_available": status_of(status, "MetricsAvailable"),
        "current_replicas": status.get("currentReplicas"),
        "desired_replicas": status.get("desiredReplicas"),
        "ready_replicas": status.get("readyReplicas"),
        "answers_generation": seen,
        "is_current": seen is not None and seen == generation,
        "because": (status.get("decision") or {}).get("because"),
        "chain": [asdict(link) for link in chain(spec, status)],
        "decision": decision_rows(status),
        "objectives": list(objective_rows(status)),
        "conditions": troubled(status),
        "discovered": discovered_rows(status),
        "metrics": source_rows(status),
    }


def is_negative(told: Json) -> bool:
    """Whether the fleet is not ready, or what decisions need is not measured."""
    return not (told["ready"] == told["metrics_available"] == "True")


def chain(spec: Json, status: Json) -> list[Link]:
    """Each link with its formula, in the order in which one follows from the other."""
    links = [*_demand(status), *_replica(status), *_fleet(spec, status), *_cost(status)]
    return [link for link in links if link.value is not None or link.name in ALWAYS]


def decision_rows(status: Json) -> list[dict[str, Any]]:
    """Each step of the last decision, with the meaning of its reason."""
    decision = status.get("decision") or {}
    steps = decision.get("steps") or ([decision] if decision.get("reason") else [])
    return [
        {
            "reason": one["reason"],
            "replicas": one.get("replicas"),
            "because": one.get("because", ""),
            "means": MEANINGS.get(one["reason"], ""),
        }
        for one in steps
    ]


def objective_rows(status: Json) -> Iterator[dict[str, Any]]:
    """Each objective: what is asked, what is measured, whether one replica can meet it."""
    for one in status.get("objectives") or ():
        yield {
            "objective": f"{one['metric']} p{one['percentile']}",
            "target_s": number(one.get("targetSeconds")),
            "measured_s": number(one.get("measuredSeconds")),
            "attainable": one.get("attainable"),
            "nearest_target_s": number(one.get("nearestTargetSeconds")),
        }


def discovered_rows(status: Json) -> list[dict[str, Any]]:
    """What the model of a replica is built from, and where each value came from."""
    return [
        {
            "value_of": one["name"],
            "value": one.get("value"),
            "source": one["source"],
            "detail": one.get("detail", ""),
        }
        for one in status.get("discovered") or ()
    ]


def source_rows(status: Json) -> list[dict[str, Any]]:
    """Which series answer for which quantity, and why one is not known."""
    return [
        {
            "quantity": one["name"],
            "metric": one.get("metric"),
            "series": one.get("series"),
            "unknown_because": one.get("unknownBecause", ""),
        }
        for one in status.get("metricSources") or ()
    ]


def number(text: Any) -> float | None:
    """Read a decimal string of a status; None if it is absent."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


ALWAYS: Final = ("arrival rate", "forecast", "ceiling", "utilization")
"""Links that are shown also if they are not known."""


def _demand(status: Json) -> Iterator[Link]:
    seen = status.get("workload") or {}
    startup = status.get("startupTime") or {}
    ahead_s, samples = number(startup.get("p90Seconds")), startup.get("samples")
    measured = f"{samples} starts measured" if samples else "assumed"
    rate, forecast = (number(seen.get(f"{k}RequestsPerSecond")) for k in ("arrival", "forecast"))
    yield Link("arrival rate", "lambda, requests offered", rate, "requests/s")
    yield Link("prompt", "mean length", number(seen.get("promptTokens")), "tokens")
    yield Link("output", "mean length", number(seen.get("outputTokens")), "tokens")
    yield Link("prefix hits", "share of the prompt", number(seen.get("prefixHitShare")))
    yield Link("dispersion", "variance / mean of arrivals", number(seen.get("dispersion")))
    yield Link("look-ahead", f"start-up time, p90, {measured}", ahead_s, "s")
    yield Link("forecast", "likely maximum of lambda within it", forecast, "requests/s")


def _replica(status: Json) -> Iterator[Link]:
    one = status.get("replica") or {}
    ceiling, held_s = (
        number(one.get("ceilingRequestsPerSecond")),
        number(one.get("residenceTimeSeconds")),
    )
    gain = number(one.get("loopGain"))
    sets = one.get("because") or status.get("bindingObjective") or "what sets the ceiling"
    formula = "largest rate of a replica at which every objective holds"
    yield Link("ceiling", formula, ceiling, "requests/s")
    yield Link("limit", sets, one.get("limit"))
    yield Link("residence time", "W(L) at the ceiling", held_s, "s")
    if ceiling is not None and held_s is not None:
        inside = littles_law_concurrency(ceiling, held_s)
        yield Link(
            "in flight at it", f"L = lambda W = {ceiling:g} x {held_s:g}", inside, "requests"
        )
    share = number(one.get("prefillUtilization"))
    yield Link("prefill utilization", "share of time on prompts, at it", share)
    yield Link("loop gain", "g = lambda dW/dL at it", gain)
    if gain is not None:
        yield Link("amplification", f"1 / (1 - g) = 1 / (1 - {gain:g})", amplification(gain))
    yield Link("KV cache", "tokens that fit in a replica", one.get("kvCapacityTokens"), "tokens")
    for factor in one.get("calibration") or ():
        formula = f"learned from {factor.get('samples', 0)} samples"
        unit = "s" if factor["name"] == "RequestSeconds" else ""
        yield Link(f"calibration {factor['name']}", formula, number(factor["value"]), unit)


def _fleet(spec: Json, status: Json) -> Iterator[Link]:
    one, seen = status.get("replica") or {}, status.get("workload") or {}
    rate, waiting = (
        number(seen.get("arrivalRequestsPerSecond")),
        number(seen.get("waitingRequests")),
    )
    running, ceiling = (
        number(seen.get("runningRequests")),
        number(one.get("ceilingRequestsPerSecond")),
    )
    ready = status.get("readyReplicas")
    formula = "lambda / (R x ceiling)"
    if rate is not None and ceiling is not None and ready:
        formula = f"{formula} = {rate:g} / ({ready} x {ceiling:g})"
    yield Link("utilization", formula, number(one.get("utilization")))
    if running is not None and waiting is not None:
        inside = running + waiting
        yield Link(
            "in flight now", f"L = {running:g} running + {waiting:g} waiting", inside, "requests"
        )
        if rate:
            now_s = littles_law_residence_time_s(inside, rate)
            yield Link("residence time now", f"W = L / lambda = {inside:g} / {rate:g}", now_s, "s")
    drain_s = number(one.get("queueDrainSeconds"))
    within_s = spec.get("queueDrainSeconds", 60)
    yield Link("drain time", f"B / (C - lambda), asked: {within_s} s", drain_s, "s")
    yield Link("ready replicas", "replicas that serve", ready)
    formula = "what demand alone asks for, about forecast / ceiling"
    yield Link("recommended replicas", formula, status.get("recommendedReplicas"))
    bounds = f"after every rule, within {spec.get('minReplicas', 1)} to {spec.get('maxReplicas')}"
    yield Link("desired replicas", bounds, status.get("desiredReplicas"))


def _cost(status: Json) -> Iterator[Link]:
    cost, one = status.get("cost") or {}, status.get("replica") or {}
    prices = [
        f"{number(kind['usdPerHour']):g} USD/h per {kind['name']}"
        for kind in status.get("accelerators") or ()
        if kind.get("usdPerHour")
    ]
    count = status.get("currentReplicas")
    if count is not None and one.get("accelerators"):
        prices.insert(0, f"{count} replicas x {one['accelerators']} accelerators")
    yield Link("cost", ", ".join(prices), number(cost.get("usdPerHour")), "USD/h")
    for key, name in (("Output", "cost of output"), ("", "cost of tokens")):
        value = number(cost.get(f"usdPerMillion{key}Tokens"))
        yield Link(name, "at the present arrival rate", value, "USD/10^6 tokens")
