"""The latency chain as rows, link by link, and what moves the ceiling."""

from collections.abc import Sequence
from typing import Any

from fleetline.control.plan import engine_objectives
from fleetline.model.objective import Metric, Objective
from fleetline.model.operating_point import OperatingPoint
from fleetline.model.replica import Replica
from fleetline.model.sensitivity import sensitivity
from fleetline.model.workload import Workload

LEAST_S = 1e-9
TAIL = 95
"""Percentile of a chain that no objective asks for."""


def chain_rows(
    point: OperatingPoint, percentile: int, *, allowance_s: float = 0.0
) -> list[dict[str, Any]]:
    """
    Mean and tail of each link, and which one dominates the tail of the first token.

    The router adds nothing: it hands a request on at once, and waits are the engine's.
    """
    links = [("network and gateway", allowance_s, allowance_s), ("router", 0.0, 0.0)]
    links += [(link.name, link.mean_s, link.percentile_s(percentile)) for link in point.chain]
    worst_s = max(tail_s for name, _, tail_s in links if name != "decode")
    return [
        {
            "link": name,
            "mean_s": _seen(mean_s),
            f"p{percentile}_s": _seen(tail_s),
            "dominates_first_token": name != "decode" and tail_s == worst_s,
        }
        for name, mean_s, tail_s in links
    ]


def _seen(duration_s: float) -> float:
    """Zero where nobody could measure it. [s]"""
    return 0.0 if duration_s < LEAST_S else duration_s


def tail_percentile(objectives: Sequence[Objective]) -> int:
    """Percentile of the first-token objective, or of the first objective."""
    first = [one for one in objectives if one.metric is Metric.TIME_TO_FIRST_TOKEN]
    return (first or list(objectives))[0].percentile if objectives else TAIL


def sensitivity_rows(
    replica: Replica,
    workload: Workload,
    objectives: Sequence[Objective],
    *,
    replicas: int = 1,
    allowance_s: float = 0.0,
) -> list[dict[str, Any]]:
    """Say what a tenth more of each knob does to the ceiling, the strongest first."""
    inside = engine_objectives(objectives, allowance_s)
    found = sensitivity(replica, workload, inside, replicas=replicas)
    ordered = sorted(found.items(), key=lambda one: -abs(one[1]))
    return [{"knob": knob, "ceiling_per_knob": change} for knob, change in ordered]
