"""Who leads, where several replicas of the operator compete: is the Lease held, and renewed?"""

import time
from collections.abc import Mapping
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.lease import DURATION_S
from fleetline.adapters.manifest import parse_time_s
from fleetline.entrypoints.findings import Finding, failed, ok, warning
from fleetline.errors import ObservationError

CHECK: Final = "lease"
LEASES: Final = "/apis/coordination.k8s.io/v1"


async def check_lease(api: ApiClient, namespace: str, name: str) -> Finding:
    """Look at the Lease; that there is none is right for a single replica."""
    subject = f"{namespace}/{name}"
    try:
        lease = await api.get(f"{LEASES}/namespaces/{namespace}/leases/{name}")
    except ApiError as error:
        if error.status == 404:
            return ok(CHECK, subject, "there is none: one replica of the operator needs none")
        if error.status == 403:  # the chart grants it only where several replicas compete
            return ok(CHECK, subject, "not looked at: this user may not get leases")
        return warning(CHECK, subject, str(error), "look at the API server")
    except ObservationError as error:
        return warning(CHECK, subject, str(error), "look at the API server")
    return _judged(subject, lease.get("spec") or {})


def _judged(subject: str, spec: Mapping[str, Any]) -> Finding:
    """Say who leads."""
    holder, renewed_s = str(spec.get("holderIdentity") or ""), parse_time_s(spec.get("renewTime"))
    if not holder or renewed_s is None:
        mend = "start the operator: the replica that held it has ended"
        return warning(CHECK, subject, "nobody holds it", mend)
    age_s = time.time() - renewed_s
    if age_s > float(spec.get("leaseDurationSeconds") or DURATION_S):
        says = f"{holder} holds it, but renewed it {age_s:.0f} s ago: nobody decides"
        mend = "look at the log of the operator's pods, and at their rights on leases"
        return failed(CHECK, subject, says, mend)
    return ok(CHECK, subject, f"{holder} leads")
