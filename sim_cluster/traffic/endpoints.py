"""Which pods take requests: the ready endpoints in the EndpointSlices of a Service."""

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


def _ready_pods(endpoint_slice: Mapping[str, Any]) -> Iterator[Key]:
    namespace = endpoint_slice["metadata"]["namespace"]
    for endpoint in endpoint_slice.get("endpoints") or ():
        target = endpoint.get("targetRef") or {}
        # an unset condition is to be read as ready
        if target.get("kind") == "Pod" and endpoint.get("conditions", {}).get("ready") is not False:
            yield target.get("namespace", namespace), target["name"]
