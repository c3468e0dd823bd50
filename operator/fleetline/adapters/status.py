"""
A turn as a status, and an earlier status as the memory to begin with.

Quantities are decimal strings of three digits with the unit in the name; the unknown is absent.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fleetline.adapters.catalog import Catalog
from fleetline.adapters.conditions import Trouble, merged, of_trouble, of_turn
from fleetline.adapters.discovery import UNKNOWN_ACCELERATOR, Discovery
from fleetline.adapters.engines import Evidence
from fleetline.adapters.manifest import FleetObject, parse_time_s
from fleetline.control.memory import Memory
from fleetline.control.plan import cost_usd_per_million_tokens
from fleetline.control.ports import Observations
from fleetline.control.shape import workload_of
from fleetline.control.turn import Turn
from fleetline.errors import ManifestError
from fleetline.model.calibration import FACTORS, PRIOR_SPREAD, CalibrationState, apply, shape_of
from fleetline.model.ceiling import Ceiling
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.queueing import drain_time_s
from fleetline.model.replica import Replica
from fleetline.policy.history import History

Json = dict[str, Any]

DIGITS: Final = 3
SHOWN_FACTORS: Final = {"step": "Step", "sequence": "Sequence", "prefill": "Prefill"}
REQUEST_FACTOR: Final = "RequestSeconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What a status shows besides the turn itself."""

    discovery: Discovery | None
    evidence: Evidence | None
    catalog: Catalog
    metrics_failure: str = ""
    """Reason of MetricsAvailable if Prometheus as a whole gave no answer."""


def render(turn: Turn, one: FleetObject, background: Background) -> Json:
    """Return the whole status after a turn."""
    decision, target = turn.decision, turn.target
    capacity = turn.assessment.capacity
    ceiling = None if capacity is None else capacity.ceiling_at(max(1, target.replicas))
    status: Json = {
        "observedGeneration": one.fleet.generation,
        "currentReplicas": decision.desired_replicas if turn.wrote else target.replicas,
        "desiredReplicas": decision.desired_replicas,
        "recommendedReplicas": decision.recommended_replicas,
        "readyReplicas": turn.assessment.situation.health.ready,
        "bindingObjective": _binding_objective(turn, ceiling),
        "replica": None if ceiling is None else _replica(turn, ceiling),
        "accelerators": _accelerators(turn, ceiling, background),
        "discovered": _discovered(background.discovery),
        "workload": _workload(turn),
        "objectives": _objectives(turn),
        "cost": _cost(turn, background.catalog),
        "startupTime": _startup(turn.memory),
        "decision": _decision(turn),
        "metricSources": _sources(background.evidence),
        "lastScaleTime": timestamp(turn.memory.last_scale_s),
        "lastMetricsTime": timestamp(turn.memory.last_metrics_s),
        "conditions": merged(
            one.status.get("conditions") or (),
            of_turn(turn, background.metrics_failure),
            generation=one.fleet.generation,
            now=str(timestamp(turn.now_s)),
        ),
    }
    return {name: value for name, value in status.items() if value not in (None, {}, [])}


def render_trouble(
    trouble: Trouble, status: Mapping[str, Any], *, generation: int, now_s: float
) -> Json:
    """Return the status of a fleet that could not be decided on: what was known stays."""
    decision = {"reason": str(trouble.reason), "because": trouble.message[:1000]}
    return {
        **status,
        "observedGeneration": generation,
        "decision": {**decision, "generation": generation},
        "conditions": merged(
            status.get("conditions") or (),
            of_trouble(trouble),
            generation=generation,
            now=str(timestamp(now_s)),
        ),
    }


def remembered(one: FleetObject, *, now_s: float) -> Memory:
    """Rebuild what a status can tell after a restart; it delays decreases and causes none."""
    status = one.status
    last_scale_s = parse_time_s(status.get("lastScaleTime"))
    if last_scale_s is not None and last_scale_s > now_s:
        last_scale_s = now_s
    return Memory(
        history=History(left_replicas=_left_replicas(status), foreign_event_s=last_scale_s),
        calibration=_calibration(status),
        last_scale_s=last_scale_s,
        last_metrics_s=parse_time_s(status.get("lastMetricsTime")),
    )


def timestamp(at_s: float | None) -> str | None:
    """RFC 3339, as Kubernetes writes it."""
    return None if at_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def decimal(value: float | None) -> str | None:
    """Write a number with three digits, without an exponent; None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    if value == 0:
        return "0"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{round(value, places):.{min(places, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _known(table: Json) -> Json:
    return {name: value for name, value in table.items() if value is not None}


def _left_replicas(status: Mapping[str, Any]) -> int | None:
    """Return the count that was left at the target, if the last turn was one that acts."""
    active = any(
        one.get("type") == "ScalingActive" and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )
    desired = status.get("desiredReplicas")
    return desired if active and isinstance(desired, int) else None


def _binding_objective(turn: Turn, ceiling: Ceiling | None) -> str | None:
    capacity = turn.assessment.capacity
    if capacity is None or ceiling is None:
        return None
    return next(
        (str(one) for one in capacity.objectives if str(one.metric) == str(ceiling.limit)), None
    )


def _replica(turn: Turn, ceiling: Ceiling) -> Json:
    target, seen = turn.target, turn.seen
    replicas = max(1, turn.assessment.situation.health.ready)
    rate = seen.arrival_rate_per_s.value if isinstance(seen, Observations) else None
    share = None if rate is None else rate / replicas
    utilization = None if share is None or ceiling.rate_per_s <= 0 else share / ceiling.rate_per_s
    return _known(
        {
            "ceilingRequestsPerSecond": decimal(ceiling.rate_per_s),
            "limit": str(ceiling.limit),
            "because": ceiling.because or None,
            "loopGain": decimal(ceiling.loop_gain),
            "utilization": decimal(utilization),
            "prefillUtilization": decimal(ceiling.utilization_of_prefill),
            "concurrency": decimal(ceiling.concurrency),
            "residenceTimeSeconds": decimal(ceiling.residence_time_s),
            "queueDrainSeconds": decimal(_drain_s(turn, ceiling, replicas)),
            "kvCapacityTokens": int(kv_capacity_tokens(target.replica)) if target.replica else None,
            "accelerators": target.replica.accelerators if target.replica else None,
            "calibration": _factors(target.replica, turn.memory.calibration) or None,
        }
    )


def _drain_s(turn: Turn, ceiling: Ceiling, replicas: int) -> float | None:
    seen = turn.seen
    if not isinstance(seen, Observations):
        return None
    waiting, rate = seen.waiting_requests.value, seen.arrival_rate_per_s.value
    if waiting is None or rate is None:
        return None
    return drain_time_s(
        backlog_requests=waiting,
        capacity_per_s=ceiling.capacity_per_s * replicas,
        arrival_rate_per_s=rate,
    )


def _factors(replica: Replica | None, state: CalibrationState) -> list[Json]:
    if replica is None or state.samples == 0:
        return []
    spread = state.uncertainty
    rows = [
        {
            "name": shown,
            "value": decimal(state.factors[name]),
            "uncertainty": decimal(spread[name]),
            "samples": state.samples,
        }
        for name, shown in SHOWN_FACTORS.items()
    ]
    request_s = apply(replica, state).calibration.request_s
    rows.append(
        {
            "name": REQUEST_FACTOR,
            "value": decimal(request_s),
            "uncertainty": decimal(spread["request"]),
            "samples": state.samples,
        }
    )
    return [_known(row) for row in rows]


def _calibration(status: Mapping[str, Any]) -> CalibrationState:
    """Read what an earlier process learned; the physical prior if there is none or it is odd."""
    rows = {
        str(row.get("name")): row
        for row in (status.get("replica") or {}).get("calibration") or ()
        if isinstance(row, Mapping)
    }
    try:
        logs = [math.log(float(rows[shown]["value"])) for shown in SHOWN_FACTORS.values()]
        spread = [
            float(rows[shown].get("uncertainty", prior))
            for shown, prior in zip(SHOWN_FACTORS.values(), PRIOR_SPREAD, strict=False)
        ]
    except (KeyError, TypeError, ValueError):
        return CalibrationState()
    logs.append(0.0)
    spread.append(PRIOR_SPREAD[-1])
    size = len(FACTORS)
    covariance = [
        spread[row] ** 2 if row == column else 0.0 for row in range(size) for column in range(size)
    ]
    return CalibrationState(log_factors=tuple(logs), covariance=tuple(covariance))


def _accelerators(turn: Turn, ceiling: Ceiling | None, background: Background) -> list[Json]:
    found = background.discovery
    if found is None:
        return []
    names = found.accelerator_names or (UNKNOWN_ACCELERATOR,)
    used = turn.target.replica.accelerator.name if turn.target.replica else ""
    return [
        _known(
            {
                "name": name,
                "replicas": turn.assessment.situation.health.ready if len(names) == 1 else None,
                "ceilingRequestsPerSecond": decimal(ceiling.rate_per_s)
                if ceiling is not None and name == used
                else None,
                "usdPerHour": decimal(_price(background.catalog, name)),
                "source": next(
                    (one.detail for one in found.found if one.name == "accelerator.name"), None
                ),
            }
        )
        for name in names
    ]


def _discovered(found: Discovery | None) -> list[Json]:
    if found is None:
        return []
    return [
        _known(
            {
                "name": one.name,
                "value": one.value or None,
                "source": str(one.source),
                "detail": one.detail[:500] or None,
            }
        )
        for one in found.found
    ]


def _workload(turn: Turn) -> Json:
    seen, memory, forecast = turn.seen, turn.memory, turn.assessment.forecast
    if not isinstance(seen, Observations):
        return {}
    known = memory.lengths.are_known
    return _known(
        {
            "arrivalRequestsPerSecond": decimal(seen.arrival_rate_per_s.value),
            "forecastRequestsPerSecond": None
            if forecast is None
            else decimal(forecast.expected_rate_per_s * memory.margin_factor),
            "promptTokens": decimal(memory.lengths.prompt_tokens),
            "outputTokens": decimal(memory.lengths.output_tokens),
            "prefixHitShare": decimal(memory.lengths.hit_share) if known else None,
            "dispersion": decimal(memory.lengths.dispersion) if known else None,
            "waitingRequests": decimal(seen.waiting_requests.value),
            "runningRequests": decimal(seen.running_requests.value),
        }
    )


def _objectives(turn: Turn) -> list[Json]:
    seen, capacity = turn.seen, turn.assessment.capacity
    rows = []
    for objective in turn.fleet.objectives:
        measured = (
            seen.latency_percentiles_s.get(str(objective))
            if isinstance(seen, Observations)
            else None
        )
        missed = capacity is not None and objective in capacity.unattainable
        rows.append(
            _known(
                {
                    "metric": str(objective.metric),
                    "percentile": objective.percentile,
                    "targetSeconds": decimal(objective.target_s),
                    "measuredSeconds": None if measured is None else decimal(measured.value),
                    "attainable": None if capacity is None else not missed,
                    "nearestTargetSeconds": decimal(capacity.nearest_target_s)
                    if missed and capacity is not None
                    else None,
                }
            )
        )
    return rows


def _price(catalog: Catalog, accelerator: str) -> float | None:
    try:
        return catalog.price_usd_per_hour(accelerator)
    except ManifestError:
        return None


def _cost(turn: Turn, catalog: Catalog) -> Json:
    replica, seen = turn.target.replica, turn.seen
    price = None if replica is None else _price(catalog, replica.accelerator.name)
    if replica is None or price is None:
        return {}
    hourly = price * replica.accelerators * turn.target.replicas
    cost: Json = {"usdPerHour": decimal(hourly), "source": "prices of the catalogue or a profile"}
    rate = seen.arrival_rate_per_s.value if isinstance(seen, Observations) else None
    if rate and turn.memory.lengths.are_known:
        lengths = workload_of(turn.memory.lengths.shape).lengths
        output, prompt = lengths.mean_output_tokens, lengths.mean_prompt_tokens
        cost["usdPerMillionOutputTokens"] = decimal(
            cost_usd_per_million_tokens(hourly, rate * output)
        )
        cost["usdPerMillionTokens"] = decimal(
            cost_usd_per_million_tokens(hourly, rate * (output + prompt))
        )
    return _known(cost)


def _startup(memory: Memory) -> Json:
    startup = memory.startup
    return _known(
        {
            "p50Seconds": decimal(startup.typical_s),
            "p90Seconds": decimal(startup.likely_s),
            "maxSeconds": decimal(max(startup.seconds, default=None)),
            "samples": len(startup.seconds),
        }
    )


def _decision(turn: Turn) -> Json:
    decision = turn.decision
    return {
        "reason": str(decision.binding.reason),
        "because": decision.binding.because[:1000],
        "generation": turn.fleet.generation,
        "steps": [
            {"reason": str(one.reason), "replicas": one.replicas, "because": one.because[:1000]}
            for one in decision.steps
        ],
    }


def _sources(evidence: Evidence | None) -> list[Json]:
    if evidence is None:
        return []
    names = sorted(evidence.sources.keys() | evidence.unknown.keys())
    return [
        _known(
            {
                "name": name,
                "metric": evidence.sources.get(name),
                "series": evidence.series.get(name),
                "unknownBecause": evidence.unknown.get(name),
            }
        )
        for name in names
    ]


def with_shape(memory: Memory, replica: Replica | None) -> Memory:
    """Tie factors that came from a status to the replica that they were shown for."""
    state = memory.calibration
    if replica is None or state.shape or not any(state.log_factors):
        return memory
    return replace(memory, calibration=replace(state, shape=shape_of(replica)))
