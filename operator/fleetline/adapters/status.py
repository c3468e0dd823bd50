"""
A turn as a status.

Quantities are decimal strings of three digits with the unit in the name; the unknown is absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetline.adapters.conditions import Trouble, merged, of_trouble, of_turn
from fleetline.adapters.decimals import decimal, known, timestamp
from fleetline.adapters.discovery import Discovery
from fleetline.adapters.engines import Evidence
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.replica_status import (
    Price,
    accelerators_part,
    cost_part,
    discovered_part,
    replica_part,
)
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations
from fleetline.control.turn import Turn
from fleetline.model.ceiling import Ceiling

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What a status shows besides the turn itself."""

    discovery: Discovery | None
    evidence: Evidence | None
    price_of: Price
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
        "replica": None if ceiling is None else replica_part(turn, ceiling),
        "accelerators": accelerators_part(turn, ceiling, background.discovery, background.price_of),
        "discovered": discovered_part(background.discovery),
        "workload": _workload(turn),
        "objectives": _objectives(turn),
        "cost": cost_part(turn, background.price_of),
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


def _binding_objective(turn: Turn, ceiling: Ceiling | None) -> str | None:
    capacity = turn.assessment.capacity
    if capacity is None or ceiling is None:
        return None
    return next(
        (str(one) for one in capacity.objectives if str(one.metric) == str(ceiling.limit)), None
    )


def _workload(turn: Turn) -> Json:
    seen, memory, demand = turn.seen, turn.memory, turn.assessment.situation.demand
    if not isinstance(seen, Observations):
        return {}
    measured = memory.lengths.are_known
    return known(
        {
            "arrivalRequestsPerSecond": decimal(seen.arrival_rate_per_s.value),
            "forecastRequestsPerSecond": None
            if demand is None
            else decimal(demand.expected_rate_per_s * demand.margin_factor),
            "promptTokens": decimal(memory.lengths.prompt_tokens),
            "outputTokens": decimal(memory.lengths.output_tokens),
            "prefixHitShare": decimal(memory.lengths.hit_share) if measured else None,
            "dispersion": decimal(memory.lengths.dispersion) if measured else None,
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
            known(
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


def _startup(memory: Memory) -> Json:
    startup = memory.startup
    return known(
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
        known(
            {
                "name": name,
                "metric": evidence.sources.get(name),
                "series": evidence.series.get(name),
                "unknownBecause": evidence.unknown.get(name),
            }
        )
        for name in names
    ]
