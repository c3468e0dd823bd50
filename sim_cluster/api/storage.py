"""
Objects as they are kept: one serialised body for each, and the few fields that selectors read.

Lists and watches are made of these bodies without parsing them, which is what makes both cheap.
One counter numbers all writes; it is the `resourceVersion`.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sim_cluster.api.errors import Json

FIRST_REVISION = 1000
"""Where the counter of writes begins; older revisions are as lost as after a compaction."""

EVENTS_KEPT = 4096
"""Past events of one collection that a watch may resume from."""


@dataclass(slots=True, frozen=True, eq=False)
class Record:
    """One version of one object."""

    namespace: str
    name: str
    uid: str
    revision: int
    body: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def parsed(self) -> Json:
        """A fresh copy of the object."""
        parsed: Json = orjson.loads(self.body)
        return parsed


@dataclass(slots=True, frozen=True, eq=False)
class Change:
    """One write: the record after it (or last, when deleted) and the one before."""

    revision: int
    kind: str
    record: Record
    previous: Record | None


class Collection:
    """All objects of one resource, and its recent changes."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Record]] = {}
        self.changes: deque[Change] = deque(maxlen=EVENTS_KEPT)
        self.oldest_revision = FIRST_REVISION
        self.watchers: set[Any] = set()

    def get(self, namespace: str, name: str) -> Record | None:
        """One record."""
        return self._namespaces.get(namespace, {}).get(name)

    def put(self, record: Record) -> None:
        """Keep a record in place of an older one."""
        self._namespaces.setdefault(record.namespace, {})[record.name] = record

    def drop(self, record: Record) -> None:
        """Forget an object."""
        names = self._namespaces[record.namespace]
        del names[record.name]
        if not names:
            del self._namespaces[record.namespace]

    def records(self, namespace: str = "") -> list[Record]:
        """All records, or those of one namespace, in the order of their keys."""
        if namespace:
            names = self._namespaces.get(namespace, {})
            return [names[name] for name in sorted(names)]
        return [record for key in sorted(self._namespaces) for record in self.records_of(key)]

    def records_of(self, namespace: str) -> Iterator[Record]:
        """Records of one namespace ("" for cluster-scoped ones) in the order of their names."""
        names = self._namespaces.get(namespace, {})
        return (names[name] for name in sorted(names))

    def __len__(self) -> int:
        return sum(len(names) for names in self._namespaces.values())

    def remember(self, change: Change) -> None:
        """Append to the recent changes and wake the watchers."""
        if len(self.changes) == EVENTS_KEPT:
            self.oldest_revision = self.changes[0].revision
        self.changes.append(change)
        for watcher in self.watchers:
            watcher.notice(change)


class Storage:
    """All collections and the counter of writes."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, key: tuple[str, str]) -> Collection:
        """The collection of a resource, empty when nothing was written yet."""
        found = self._collections.get(key)
        if found is None:
            found = self._collections[key] = Collection()
        return found

    def keys(self) -> list[tuple[str, str]]:
        """Keys of all collections."""
        return list(self._collections)

    def write(
        self, key: tuple[str, str], obj: Json, fields: Mapping[str, str], kind: str
    ) -> Record:
        """Store an object under the next revision; `kind` is ADDED or MODIFIED."""
        record = self._record(obj, fields)
        collection = self.collection(key)
        previous = collection.get(record.namespace, record.name)
        collection.put(record)
        collection.remember(Change(record.revision, kind, record, previous))
        return record

    def delete(self, key: tuple[str, str], obj: Json, fields: Mapping[str, str]) -> Record:
        """Remove an object; its last state carries the revision of the removal."""
        record = self._record(obj, fields)
        collection = self.collection(key)
        previous = collection.get(record.namespace, record.name)
        collection.drop(record)
        collection.remember(Change(record.revision, "DELETED", record, previous))
        return record

    def _record(self, obj: Json, fields: Mapping[str, str]) -> Record:
        self.revision += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        return Record(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            revision=self.revision,
            body=orjson.dumps(obj),
            labels=metadata.get("labels") or {},
            fields=fields,
        )
