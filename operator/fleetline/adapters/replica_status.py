"""The parts of a status about one replica: its model, its accelerators, their source, the cost."""

from collections.abc import Callable
from typing import Any, Final

from fleetline.adapters.decimals import decimal, known
from fleetline.adapters.discovery import UNKNOWN_ACCELERATOR, Discovery
from fleetline.control.plan import cost_usd_per_million_tokens
from fleetline.control.ports import Observations
from fleetline.control.shape import workload_of
from fleetline.control.turn import Turn
from fleetline.model.calibration import CalibrationState, apply
from fleetline.model.ceiling import Ceiling
from fleetline.model.kv_cache import kv_capacity_tokens
from fleetline.model.queueing import drain_time_s
from fleetline.model.replica import Replica

Json = dict[str, Any]
Price = Callable[[str], float | None]
"""Price of one accelerator by name. [USD/h]"""

SHOWN_FACTORS: Final = {"step": "Step", "sequence": "Sequence", "prefill": "Prefill"}
REQUEST_FACTOR: Final = "RequestSeconds"


def replica_part(turn: Turn, ceiling: Ceiling) -> Json:
    """Say what the model says about one replica."""
    target, seen = turn.target, turn.seen
    replicas = max(1, turn.assessment.situation.health.ready)
    rate = seen.arrival_rate_per_s.value if isinstance(seen, Observations) else None
    share = None if rate is None else rate / replicas
    utilization = None if share is None or ceiling.rate_per_s <= 0 else share / ceiling.rate_per_s
    return known(
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
    return [known(row) for row in rows]


def accelerators_part(
    turn: Turn, ceiling: Ceiling | None, found: Discovery | None, price_of: Price
) -> list[Json]:
    """Name each type of accelerator that runs the fleet."""
    if found is None:
        return []
    names = found.accelerator_names or (UNKNOWN_ACCELERATOR,)
    used = turn.target.replica.accelerator.name if turn.target.replica else ""
    return [
        known(
            {
                "name": name,
                "replicas": turn.assessment.situation.health.ready if len(names) == 1 else None,
                "ceilingRequestsPerSecond": decimal(ceiling.rate_per_s)
                if ceiling is not None and name == used
                else None,
                "usdPerHour": decimal(price_of(name)),
                "source": next(
                    (one.detail for one in found.found if one.name == "accelerator.name"), None
                ),
            }
        )
        for name in names
    ]


def discovered_part(found: Discovery | None) -> list[Json]:
    """Name each value that the replica is built from, and its source."""
    if found is None:
        return []
    return [
        known(
            {
                "name": one.name,
                "value": one.value or None,
                "source": str(one.source),
                "detail": one.detail[:500] or None,
            }
        )
        for one in found.found
    ]


def cost_part(turn: Turn, price_of: Price) -> Json:
    """Price the current replicas, and tokens at the present load."""
    replica, seen = turn.target.replica, turn.seen
    price = None if replica is None else price_of(replica.accelerator.name)
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
    return known(cost)
