"""Resource quantities: `500m`, `16Gi`, `8`."""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.api_client import Object

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{name: Decimal(1000) ** (power + 1) for power, name in enumerate("kMGTPE")},
    **{f"{name}i": Decimal(1024) ** (power + 1) for power, name in enumerate("KMGTPE")},
}
_WRITTEN = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<suffix>[numkMGTPE]|[KMGTPE]i)?"
)


@functools.lru_cache(maxsize=4096)
def parse(text: str | float) -> float:
    """Turn a quantity into a number: cores, bytes or pieces.

    Kubernetes documentation, "Quantity": decimal SI suffixes, binary suffixes, or an exponent.
    """
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"quantity must be a number with a unit suffix, got {text!r}")
    return float(Decimal(found["number"]) * _SUFFIXES[found["suffix"] or ""])


def requests_of(pod: Object) -> dict[str, float]:
    """Add up what a pod asks for.

    Containers run at once, so they add up; init containers run before them one at a time, so the
    largest counts, except those that restart always (side-cars), which stay. Limits count where
    there is no request, as the API server's defaulting has it.
    """
    spec = pod["spec"]
    total: dict[str, float] = {}
    for container in spec.get("containers") or ():
        _add(total, _of_container(container))
    peak: dict[str, float] = {}
    sidecars: dict[str, float] = {}
    for container in spec.get("initContainers") or ():
        asked = _of_container(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = {}
        for name in {*asked, *sidecars}:
            held = asked.get(name, 0.0) + sidecars.get(name, 0.0)
            peak[name] = max(peak.get(name, 0.0), held)
    _add(total, sidecars)
    for name, held in peak.items():
        total[name] = max(total.get(name, 0.0), held)
    _add(total, {name: parse(text) for name, text in (spec.get("overhead") or {}).items()})
    return total


def _of_container(container: Mapping[str, Object]) -> dict[str, float]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse(text) for name, text in asked.items()}


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + value
