"""What the operator says of a fleet in its own metrics: fresh at every turn, unlike a status."""

import asyncio
import math
import re
import urllib.error
import urllib.request
from typing import Any, Final

from fleetline.entrypoints.demo.scenario import NAME, NAMESPACE

SHOWN: Final = {
    "replica_capacity_requests_per_second": "ceiling_per_s",
    "expected_rate_requests_per_second": "expected_rate_per_s",
    "utilization_ratio": "utilization",
    "loop_gain_ratio": "loop_gain",
    "desired_replicas": "desired_replicas",
}
"""Metrics of the operator, and the fields of a moment that they fill."""

LINE: Final = re.compile(r"^fleetline_(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
TIMEOUT_S: Final = 2.0


async def read_gauges(url: str | None) -> dict[str, Any]:
    """Read what is shown; None is what is not known, and everything if nothing answers."""
    try:
        text = "" if url is None else await asyncio.to_thread(_get, url)
    except (urllib.error.URLError, OSError):
        text = ""
    return gauges_in(text)


def gauges_in(exposition: str) -> dict[str, float | None]:
    """Pick the gauges of the demo's fleet out of the operator's metrics."""
    found: dict[str, float | None] = dict.fromkeys(SHOWN.values())
    for name, labels, value in LINE.findall(exposition):
        is_ours = f'fleet="{NAME}"' in labels and f'namespace="{NAMESPACE}"' in labels
        if name in SHOWN and is_ours and math.isfinite(float(value)):
            found[SHOWN[name]] = float(value)
    return found


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - our own URL
        return str(answer.read().decode())
