"""What the world is told about a turn: status if it is due, events on transitions, one log line."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetline.adapters.api_client import FIELD_MANAGER, ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.conditions import Trouble
from fleetline.adapters.events import NORMAL, WARNING, EventWriter
from fleetline.adapters.listed import shared
from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.settling import NO_DRIFT, Difference, Drift, difference, merge_patch
from fleetline.adapters.snapshot import FLEETS
from fleetline.control.ports import Observations
from fleetline.control.turn import Turn
from fleetline.errors import ObservationError
from fleetline.policy.decision import Reason

LOGGER: Final = logging.getLogger("fleetline")
Json = dict[str, Any]

ALARMS: Final = ("Ready", "MetricsAvailable", "AbleToScale", "ObjectivesAttainable")
"""Conditions whose turning False, and back, is worth an event."""


STEADY: Final = frozenset(
    {
        *(Reason.DEMAND, Reason.IN_FLIGHT, Reason.BACKLOG, Reason.WITHIN_TOLERANCE),
        *(Reason.SCALE_UP_STABILIZED, Reason.SCALE_DOWN_STABILIZED),
    }
)
"""Reasons that take turns while the count stays: no news for a log."""


@dataclass(slots=True)
class _Told:
    """What was last told about one fleet."""

    status: Mapping[str, Any]
    versions: tuple[str, ...] = ()
    """Resource versions with which that status is the last that we know: of the list in which it
    was not there yet, and of the object that the write made."""
    drift: Drift = NO_DRIFT
    line: str = ""


class Reporter:
    """Writes statuses and events; a failure is counted and tried again at the next turn."""

    def __init__(self, api: ApiClient, events: EventWriter, metrics: OwnMetrics) -> None:
        """Report through `api`."""
        self._api = api
        self._events = events
        self._metrics = metrics
        self._told: dict[str, _Told] = {}
        self._told_outdated = False

    def forget(self, uid: str) -> None:
        """Drop what was told about a fleet that is gone."""
        self._told.pop(uid, None)

    def status_of(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the status of a listed fleet, or our last write if the list is older than it."""
        metadata = body.get("metadata") or {}
        told = self._told.get(str(metadata.get("uid", "")))
        if told is not None and str(metadata.get("resourceVersion")) in told.versions:
            return told.status
        status = body.get("status")
        return status if isinstance(status, Mapping) else {}

    async def tell(self, body: Mapping[str, Any], status: Json, *, line: str) -> None:
        """Write the status if it is due, events of conditions that flipped, and the log line."""
        metadata = body["metadata"]
        uid = str(metadata["uid"])
        told = self._told.get(uid)
        old = self.status_of(body)
        if told is None or told.line != line:
            LOGGER.info(line)
        differs, now_s = difference(old, status), asyncio.get_running_loop().time()
        before = told or _Told(old)
        drift = before.drift.after(differs, now_s)
        self._told[uid] = _Told(old, before.versions, drift, line)
        waits = differs is Difference.NUMBERS and not drift.is_due(now_s)
        if differs is Difference.NONE or waits:
            return
        written = await self._patch(metadata, old, status)
        if written is not None:
            self._note_dropped(status, written.get("status") or {})
            made = written.get("metadata") or {}
            versions = tuple(str(one.get("resourceVersion")) for one in (metadata, made))
            self._told[uid] = _Told(shared(status), versions, line=line)
            await self._tell_flips(metadata, old, status)

    async def tell_scaled(self, turn: Turn) -> None:
        """Write an event about a count that was written, or that somebody else changed."""
        fleet, decision = turn.fleet, turn.decision
        identity = (fleet.namespace, fleet.name, fleet.uid)
        if turn.found_changed_from is not None:
            note = (
                f"{fleet.target.kind} {fleet.target.name} was set from "
                f"{turn.found_changed_from} to {turn.target.replicas} replicas from outside"
            )
            await self._event(identity, NORMAL, "ExternalChange", note, turn.now_s)
        if turn.wrote:
            up = decision.desired_replicas > decision.current_replicas
            reason = "ScaledUp" if up else "ScaledDown"
            await self._event(identity, NORMAL, reason, str(decision), turn.now_s)

    def _note_dropped(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        """Say once that the definition in the cluster is older than the operator."""
        dropped = ", ".join(f"status.{name}" for name in sorted(sent.keys() - stored.keys()))
        if not dropped:
            return
        self._metrics.failures.labels("DefinitionOutdated").inc()
        if not self._told_outdated:
            self._told_outdated = True
            LOGGER.warning("the definition of servingfleets must be this release's: no %s", dropped)

    async def _patch(
        self, metadata: Mapping[str, Any], old: Mapping[str, Any], new: Json
    ) -> Mapping[str, Any] | None:
        """Write what differs; return the object as it is stored, or None if it was not written."""
        loop = asyncio.get_running_loop()
        patch = merge_patch(old, new)
        if not patch or loop.time() < self._api.throttled_until_s:
            return None
        path = (
            f"{FLEETS}/namespaces/{metadata['namespace']}/servingfleets/{metadata['name']}/status"
        )
        for last in (False, True):
            try:
                body, query = {"status": patch}, {"fieldManager": FIELD_MANAGER}
                return await self._api.patch(path, body, query)
            except ApiError as error:
                if error.status == 409 and not last:
                    continue
                self._metrics.failures.labels("StatusNotWritten").inc()
                return None
            except ObservationError:
                self._metrics.failures.labels("StatusNotWritten").inc()
                return None
        return None

    async def _tell_flips(
        self, metadata: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        before = {one["type"]: one.get("status") for one in old.get("conditions") or ()}
        identity = (metadata["namespace"], metadata["name"], metadata["uid"])
        now_s = time.time()
        for one in new.get("conditions") or ():
            kind, status = one["type"], one["status"]
            if kind not in ALARMS or before.get(kind) == status:
                continue
            if status == "False":
                await self._event(identity, WARNING, one["reason"], one["message"], now_s)
            elif status == "True" and before.get(kind) == "False":
                await self._event(identity, NORMAL, f"{kind}Again", one["message"], now_s)

    async def _event(
        self, identity: tuple[str, str, str], kind: str, reason: str, note: str, at_s: float
    ) -> None:
        await self._events.write(identity, kind=kind, reason=reason, note=note, at_s=at_s)


def turn_line(turn: Turn) -> str:
    """One line of JSON about a decision, without what changes at every turn."""
    decision = turn.decision
    seen = turn.seen
    reason = decision.binding.reason
    if reason in STEADY and not decision.changes_replicas:
        reason = Reason.DEMAND
    return json.dumps(
        {
            "event": "decision",
            "fleet": turn.fleet.key,
            "current_replicas": decision.current_replicas,
            "desired_replicas": decision.desired_replicas,
            "reason": str(reason),
            "wrote": turn.wrote,
            "metrics": "observed" if isinstance(seen, Observations) else "unknown",
        }
    )


def trouble_line(key: str, trouble: Trouble) -> str:
    """One line of JSON about a fleet that cannot be decided on."""
    return json.dumps(
        {
            "event": "trouble",
            "fleet": key,
            "reason": str(trouble.reason),
            "because": trouble.message,
        }
    )
