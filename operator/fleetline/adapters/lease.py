"""
Leader election on a Lease, as client-go does it: valid 15 s, renewed within 10 s, tried every 2 s.

Who loses the Lease stops acting and keeps trying; nothing crashes.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.errors import ObservationError

DURATION_S: Final = 15.0
RENEW_WITHIN_S: Final = 10.0
RETRY_S: Final = 2.0

Json = dict[str, Any]


class Lease:
    """Our share in one Lease object."""

    def __init__(
        self,
        api: ApiClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Compete for `namespace/name` as `identity`."""
        self._api = api
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._clock = clock
        self._renewed_s: float | None = None
        self.term = 0
        """Times that the Lease was taken over from somebody else, or from nobody."""
        self._seen: tuple[str, str] | None = None
        self._seen_s = 0.0

    @property
    def is_held(self) -> bool:
        """Whether we may act: we renewed within the last ten seconds."""
        return self._renewed_s is not None and self._clock() - self._renewed_s < RENEW_WITHIN_S

    async def keep(self) -> None:
        """Compete for ever; a failed try leaves the Lease to run out."""
        while True:
            with contextlib.suppress(ObservationError):  # it runs out unless a later try succeeds
                await self.try_once()
            await asyncio.sleep(RETRY_S)

    async def try_once(self) -> bool:
        """Acquire or renew; ObservationError if the API server does not let us."""
        started_s = self._clock()
        try:
            lease = await self._api.get(f"{self._path}/{self._name}")
        except ApiError as error:
            if error.status != 404:
                raise
            await self._api.post(self._path, self._body({}, transitions=0))
            self._renewed_s = started_s
            self.term += 1
            return True
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in ("", self._identity) and not self._has_run_out(spec):
            self._renewed_s = None
            return False
        transitions = int(spec.get("leaseTransitions") or 0) + (holder != self._identity)
        await self._api.put(
            f"{self._path}/{self._name}", self._body(lease["metadata"], transitions=transitions)
        )
        self._renewed_s = started_s
        self.term += holder != self._identity
        return True

    async def release(self) -> None:
        """Let the next one in at once."""
        if not self.is_held:
            return
        lease = await self._api.get(f"{self._path}/{self._name}")
        if (lease.get("spec") or {}).get("holderIdentity") != self._identity:
            return
        lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        await self._api.put(f"{self._path}/{self._name}", lease)
        self._renewed_s = None

    def _has_run_out(self, spec: Json) -> bool:
        """Whether another's Lease was not renewed for its validity, by our own clock."""
        seen = str(spec.get("holderIdentity")), str(spec.get("renewTime"))
        if seen != self._seen:
            self._seen, self._seen_s = seen, self._clock()
        validity_s = float(spec.get("leaseDurationSeconds") or DURATION_S)
        return self._clock() - self._seen_s > validity_s

    def _body(self, metadata: Json, *, transitions: int) -> Json:
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, **_kept(metadata)},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(DURATION_S),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }


def _kept(metadata: Json) -> Json:
    names = ("namespace", "resourceVersion", "uid", "labels", "annotations")
    return {name: metadata[name] for name in names if name in metadata}
