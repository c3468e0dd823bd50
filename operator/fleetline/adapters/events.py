"""Events: on transitions only, best effort, never in the way of a turn."""

import contextlib
import re
import time
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.manifest import GROUP, KIND, VERSION
from fleetline.errors import ObservationError

LONGEST_NOTE: Final = 1000
NORMAL, WARNING = "Normal", "Warning"


class EventWriter:
    """Writes to events.k8s.io, or to the core group where that is refused."""

    def __init__(self, api: ApiClient, *, instance: str) -> None:
        """Write as `instance`."""
        self._api = api
        self._instance = instance
        self._count = 0
        self.lost = 0
        """Events that could not be written."""

    async def write(
        self, fleet: tuple[str, str, str], *, kind: str, reason: str, note: str, at_s: float
    ) -> None:
        """Tell about the fleet (namespace, name, uid); a failure is counted, not raised."""
        self._count += 1
        namespace, name, uid = fleet
        micro_s = round(at_s * 1e6)
        reference = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "namespace": namespace,
            "name": name,
            "uid": uid,
        }
        title = f"{name}.{micro_s:x}{self._count:x}"
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": title},
            "eventTime": _micro_time(micro_s),
            "reportingController": f"{GROUP}/fleetline",
            "reportingInstance": self._instance[:128],
            "action": "Scale",
            "reason": re.sub(r"[^A-Za-z]", "", reason)[:128] or "Changed",
            "regarding": reference,
            "note": note[:LONGEST_NOTE],
            "type": kind,
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        try:
            await self._api.post(path, body)
        except ObservationError:
            await self._write_core(namespace, body)

    async def _write_core(self, namespace: str, body: dict[str, Any]) -> None:
        seconds = body["eventTime"][:19] + "Z"
        core = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": body["metadata"],
            "involvedObject": body["regarding"],
            "reason": body["reason"],
            "message": body["note"],
            "type": body["type"],
            "source": {"component": "fleetline"},
            "firstTimestamp": seconds,
            "lastTimestamp": seconds,
            "count": 1,
        }
        self.lost += 1
        with contextlib.suppress(ObservationError):
            await self._api.post(f"/api/v1/namespaces/{namespace}/events", core)
            self.lost -= 1


def _micro_time(micro_s: int) -> str:
    seconds, rest = divmod(micro_s, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:06d}Z"
