"""Which pods take requests: ready endpoints of a Service, or ready pods with some labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sim_cluster.informer import Key


def slices_selector(service: str) -> str:
    """Select the EndpointSlices of a Service."""
    return f"kubernetes.io/service-name={service}"


class Endpoints:
    """The ready pods of all slices of one Service."""

    def __init__(self) -> None:
        self._by_slice: dict[str, list[Key]] = {}
        self.ready: tuple[Key, ...] = ()
        """Pods that take requests, in a stable order."""

    def take(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Take note of a slice that was created, changed or deleted."""
        if after is not None:
            self._by_slice[after["metadata"]["name"]] = list(_ready_pods(after))
        elif before is not None:
            self._by_slice.pop(before["metadata"]["name"], None)
        self.ready = tuple(sorted({key for keys in self._by_slice.values() for key in keys}))


class SelectedPods:
    """The ready pods of a namespace that carry all the given labels."""

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self._namespace = namespace
        self._labels = dict(labels)
        self._known: set[Key] = set()
        self.ready: tuple[Key, ...] = ()
        """Pods that take requests, in a stable order."""

    def take(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Take note of a pod that was created, changed or deleted."""
        pod = after or before
        if pod is None or pod["metadata"]["namespace"] != self._namespace:
            return
        key = (self._namespace, pod["metadata"]["name"])
        if after is not None and self._selects(after) and _takes_requests(after):
            self._known.add(key)
        else:
            self._known.discard(key)
        self.ready = tuple(sorted(self._known))

    def _selects(self, pod: Mapping[str, Any]) -> bool:
        own = pod["metadata"].get("labels") or {}
        return self._labels.items() <= own.items()


def _takes_requests(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _ready_pods(endpoint_slice: Mapping[str, Any]) -> Iterator[Key]:
    namespace = endpoint_slice["metadata"]["namespace"]
    for endpoint in endpoint_slice.get("endpoints") or ():
        target = endpoint.get("targetRef") or {}
        # an unset condition is to be read as ready
        if target.get("kind") == "Pod" and endpoint.get("conditions", {}).get("ready") is not False:
            yield target.get("namespace", namespace), target["name"]
