"""
The scale subresource of a target: where it is, what it says, and how its count is changed.

A count is written with the resource version that was just read, so that a change by somebody else
is never overwritten.
"""

from typing import Any

from fleetline.adapters.api_client import FIELD_MANAGER, ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.manifest import KIND
from fleetline.adapters.snapshot import FLEETS, WORKLOADS
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Target
from fleetline.errors import ObservationError
from fleetline.policy.decision import Reason

Json = dict[str, Any]


class TargetError(ObservationError):
    """The scaled object cannot be read or written; `reason` is that of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Scales:
    """Reads and writes the scale of targets of any kind that has one."""

    def __init__(self, api: ApiClient) -> None:
        """Ask `api`; kinds are looked up when they are first needed."""
        self._api = api
        self._plurals: dict[tuple[str, str], str] = {}

    async def read(self, fleet: Fleet) -> Json:
        """Read the scale of a target; TargetError if that is refused or there is none."""
        try:
            return await self._api.get(await self.path(fleet))
        except ApiError as error:
            raise TargetError(_reason(error, "FailedGetScale"), str(error)) from None

    async def write(self, fleet: Fleet, target: Target, replicas: int) -> None:
        """
        Patch the scale subresource, if fleet and count are still what was decided on.

        Raises
        ------
        TargetError
            If somebody else changed either meanwhile, or the write was refused: the turn is
            dropped, and the next one looks again.
        """
        path = f"{FLEETS}/namespaces/{fleet.namespace}/servingfleets/{fleet.name}"
        metadata = (await self._api.get(path)).get("metadata") or {}
        same = metadata.get("uid") == fleet.uid and metadata.get("generation") == fleet.generation
        if not same or metadata.get("deletionTimestamp"):
            raise TargetError("SpecChanged", f"{KIND} {fleet.key} changed during the turn")
        scale = await self.read(fleet)
        current = int((scale.get("spec") or {}).get("replicas") or 0)
        if current != target.replicas:
            raise TargetError(
                "TargetChanged",
                f"the count went from {target.replicas} to {current} during the turn",
            )
        body = {
            "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
            "spec": {"replicas": replicas},
        }
        try:
            await self._api.patch(await self.path(fleet), body, {"fieldManager": FIELD_MANAGER})
        except ApiError as error:
            reason = "Conflict" if error.status == 409 else _reason(error, "FailedUpdateScale")
            raise TargetError(reason, str(error)) from None

    async def path(self, fleet: Fleet) -> str:
        """Path of the scale subresource of a target; TargetError if its kind has none."""
        group_version, kind = fleet.target.api_version, fleet.target.kind
        prefix = "/api" if "/" not in group_version else "/apis"
        plural = WORKLOADS.get(kind) if group_version == "apps/v1" else None
        plural = plural or await self._plural(f"{prefix}/{group_version}", kind)
        where = f"{prefix}/{group_version}/namespaces/{fleet.namespace}"
        return f"{where}/{plural}/{fleet.target.name}/scale"

    async def _plural(self, path: str, kind: str) -> str:
        """Plural of a kind, from discovery; TargetError unless it has a scale subresource."""
        if (path, kind) not in self._plurals:
            try:
                listed = (await self._api.get(path)).get("resources") or []
            except ApiError as error:
                raise TargetError(_reason(error, "FailedGetScale"), str(error)) from None
            names = {str(one.get("name", "")) for one in listed}
            plural = next((str(one["name"]) for one in listed if one.get("kind") == kind), "")
            if f"{plural}/scale" not in names:
                raise TargetError("TargetNotScalable", f"{kind} of {path} has no scale subresource")
            self._plurals[path, kind] = plural
        return self._plurals[path, kind]


def _reason(error: ApiError, otherwise: str) -> str:
    if error.status == 404:
        return Reason.TARGET_NOT_FOUND
    return "Forbidden" if error.status in (401, 403) else otherwise
