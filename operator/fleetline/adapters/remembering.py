"""An earlier status as the memory to begin with after a restart."""

import math
from collections.abc import Mapping
from typing import Any

from fleetline.adapters.manifest import FleetObject, parse_time_s
from fleetline.adapters.replica_status import SHOWN_FACTORS
from fleetline.control.memory import Memory
from fleetline.model.calibration import FACTORS, PRIOR_SPREAD, CalibrationState
from fleetline.policy.history import History


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


def _left_replicas(status: Mapping[str, Any]) -> int | None:
    """Return the count that was left at the target, if the last turn was one that acts."""
    active = any(
        one.get("type") == "ScalingActive" and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )
    desired = status.get("desiredReplicas")
    return desired if active and isinstance(desired, int) else None


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
