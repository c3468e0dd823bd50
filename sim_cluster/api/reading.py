"""Reads: lists with pages, and the start of watches."""

import base64
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

import orjson

from sim_cluster.api.calls import Call
from sim_cluster.api.errors import ApiError, bad_request, cause, expired
from sim_cluster.api.selectors import Selector
from sim_cluster.api.state import State
from sim_cluster.api.storage import Record
from sim_cluster.api.watch_cache import Rendering, Watcher

SNAPSHOTS_KEPT = 64
"""Paged lists in progress; the oldest is forgotten first, and its token then expires."""


def selector_of(call: Call, state: State) -> Selector:
    """The selectors of a request."""
    fields = call.query.get("fieldSelector", "")
    if call.name:
        by_name = f"metadata.name={call.name}"
        fields = f"{fields},{by_name}" if fields else by_name
    resource = call.resource
    return Selector(
        labels=call.query.get("labelSelector", ""),
        fields=fields,
        selectable_fields=state.selectable_fields(resource),
    )


def revision_of(text: str) -> int:
    """A resourceVersion as a number."""
    if not text.isdigit():
        detail = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": {detail}'
        )
    return int(text)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and how it goes on."""

    records: list[Record]
    revision: int
    token: str = ""
    remaining: int | None = None


@dataclass(slots=True)
class Reader:
    """Lists and watches."""

    state: State
    _snapshots: OrderedDict[str, tuple[int, list[Record]]] = field(default_factory=OrderedDict)

    def page(self, call: Call) -> Page:
        """The records that a list request asks for."""
        asked = call.query.get("limit") or "0"
        if not asked.isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{asked}": invalid syntax')
        limit = int(asked)
        token = call.query.get("continue", "")
        if token:
            return self._next_page(token, limit)
        self._check_revision(call)
        selector = selector_of(call, self.state)
        records = self.state.storage.collection(call.resource.storage_key).records(call.namespace)
        if not selector.is_empty:
            records = [record for record in records if selector.matches(record)]
        revision = self.state.storage.revision
        if not 0 < limit < len(records):
            return Page(records, revision)
        remaining = len(records) - limit if selector.is_empty else None
        return Page(records[:limit], revision, self._keep(revision, records, limit), remaining)

    def _check_revision(self, call: Call) -> None:
        asked, match = (
            call.query.get("resourceVersion", ""),
            call.query.get("resourceVersionMatch", ""),
        )
        if match and not asked:
            text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise _invalid_options("resourceVersionMatch", text)
        if match not in ("", "Exact", "NotOlderThan"):
            text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
            raise _invalid_options("resourceVersionMatch", text)
        if not asked or asked == "0":
            return
        revision = revision_of(asked)
        if revision > self.state.storage.revision:
            message = f"Too large resource version: {asked}, current: {self.state.storage.revision}"
            causes = [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
            details = {"causes": causes}
            raise ApiError(504, "Timeout", message, details=details, retry_after_s=1)
        collection = self.state.storage.collection(call.resource.storage_key)
        latest = collection.changes[-1].revision if collection.changes else 0
        if match == "Exact" and revision < latest:
            raise expired(f"The provided resource version is no longer kept: {asked}")

    def _keep(self, revision: int, records: list[Record], offset: int) -> str:
        key = secrets.token_hex(8)
        self._snapshots[key] = (revision, records)
        while len(self._snapshots) > SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)
        return _token(revision, key, offset)

    def _next_page(self, token: str, limit: int) -> Page:
        try:
            decoded = orjson.loads(base64.urlsafe_b64decode(token))
            key, offset = decoded["key"], decoded["offset"]
        except (ValueError, KeyError, TypeError):
            raise bad_request(
                f"invalid continue token: continue key is not valid: {token}"
            ) from None
        if key not in self._snapshots:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result."
                " You can start a new list without the continue parameter."
            )
        revision, records = self._snapshots[key]
        rest = records[offset:]
        if not 0 < limit < len(rest):
            return Page(rest, revision)
        token = _token(revision, key, offset + limit)
        return Page(rest[:limit], revision, token, len(rest) - limit)

    def watch(self, call: Call, rendering: Rendering | None = None) -> Watcher:
        """A watcher that is registered and has what it missed queued."""
        resource = call.resource
        collection = self.state.storage.collection(resource.storage_key)
        watcher = Watcher(
            collection=collection,
            namespace=call.namespace,
            selector=selector_of(call, self.state),
            render=rendering or self.state.rendering(resource),
        )
        asked = call.query.get("resourceVersion", "")
        wants_initial = call.query.get("sendInitialEvents", "")
        self._check_watch(call, wants_initial)
        if wants_initial == "true" or (not wants_initial and asked in ("", "0")):
            self._send_initial(call, watcher)
            watcher.last_revision = self.state.storage.revision
            if wants_initial == "true":
                watcher.queue_frame(bookmark(call, self.state.storage.revision, is_initial=True))
        elif asked in ("", "0"):
            watcher.last_revision = self.state.storage.revision
        else:
            watcher.replay(revision_of(asked))
        collection.watchers.add(watcher)
        return watcher

    def _check_watch(self, call: Call, wants_initial: str) -> None:
        match = call.query.get("resourceVersionMatch", "")
        if wants_initial and match != "NotOlderThan":
            text = (
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
            raise _invalid_options("resourceVersionMatch", text)
        if match and not wants_initial:
            text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents"
            raise _invalid_options("resourceVersionMatch", f"{text} is provided")

    def _send_initial(self, call: Call, watcher: Watcher) -> None:
        selector = selector_of(call, self.state)
        collection = self.state.storage.collection(call.resource.storage_key)
        for record in collection.records(call.namespace):
            if selector.matches(record):
                watcher.queue("ADDED", record)


def _token(revision: int, key: str, offset: int) -> str:
    token = {"rv": revision, "key": key, "offset": offset}
    return base64.urlsafe_b64encode(orjson.dumps(token)).decode()


def _invalid_options(name: str, text: str) -> ApiError:
    error = cause("FieldValueForbidden", name, text)
    message = f'ListOptions.meta.k8s.io "" is invalid: {name}: {text}'
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [error]}
    return ApiError(422, "Invalid", message, details=details)


def bookmark(call: Call, revision: int, *, is_initial: bool = False) -> bytes:
    """A BOOKMARK line: everything up to a revision was sent."""
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if is_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    resource = call.resource
    obj = {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": metadata}
    return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


def list_body(call: Call, page: Page, bodies: list[bytes]) -> bytes:
    """The JSON of a list, made of the bodies of its items."""
    resource = call.resource
    metadata: dict[str, object] = {"resourceVersion": str(page.revision)}
    if page.token:
        metadata["continue"] = page.token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    head = {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.group_version,
        "metadata": metadata,
    }
    start = orjson.dumps(head)[:-1] + b',"items":['
    if not bodies:
        return start + b"]}"
    bodies[0] = start + bodies[0]
    bodies[-1] += b"]}"
    return b",".join(bodies)  # one copy, however long the list
