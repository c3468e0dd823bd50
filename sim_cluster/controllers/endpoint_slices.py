"""EndpointSlices: which pods are behind a Service.

A real API server refuses loopback addresses in EndpointSlices (422, "may not be in the loopback
range"), and simulated pods have no other. Their slices have `addressType: FQDN` and the name that
the cluster's DNS would give the address; `targetRef` and `conditions` are as usual. So this
controller stands in for Kubernetes' own on every backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim_cluster.controllers.index import Index
from sim_cluster.controllers.view import reference_to
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import is_finished, is_ready, is_terminating, node_name
from sim_cluster.resources import ENDPOINT_SLICES, PODS, SERVICES
from sim_cluster.selectors import labels_of, selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sim_cluster.api_client import Object
    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Key

_PER_SLICE = 100
_GATHER_S = 0.05
_SERVICE_NAME = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "sim.fleetline.dev"

Label = tuple[str, str, str]
"""Namespace, label key and label value."""


class EndpointSlices:
    """Keeps the slices of every Service that has a selector."""

    name = "endpointslice"

    def __init__(self, view: View) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._view = view
        self._services: Index[Label] = Index(view.informer(SERVICES), _first_selector_term)
        self._pods: Index[Label] = Index(view.informer(PODS), _label_terms)
        self._slices: Index[Key] = Index(view.informer(ENDPOINT_SLICES), _service_of)
        view.informer(SERVICES).on_change(self._service_changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        """Write down the addresses of a Service's pods, where they differ from what is written."""
        service = self._view.get(SERVICES, key)
        if service is None or not service["spec"].get("selector") or is_terminating(service):
            return
        pods = self._pods_of(service)
        named = [pod for pod in pods if _is_loopback(_ip(pod))]
        addressed = [pod for pod in pods if not _is_loopback(_ip(pod))]
        await self._write_slices(service, named, "FQDN")
        await self._write_slices(service, addressed, "IPv4")

    async def _write_slices(self, service: Object, pods: Sequence[Object], kind: str) -> None:
        ports = _ports(service, pods)
        entries = [_endpoint(pod, service) for pod in pods]
        starts = range(0, max(len(entries), int(kind == "IPv4")), _PER_SLICE)
        wanted = [entries[start : start + _PER_SLICE] for start in starts]
        known = self._slices[key_of(service)].values()
        existing = sorted((each for each in known if each["addressType"] == kind), key=key_of)
        for place, chunk in enumerate(wanted):
            content = {"endpoints": chunk, "ports": ports}
            if place >= len(existing):
                await self._view.create(ENDPOINT_SLICES, {**_new_slice(service, kind), **content})
            elif any(existing[place].get(name) != value for name, value in content.items()):
                await self._view.patch(ENDPOINT_SLICES, key_of(existing[place]), content)
        for each in existing[len(wanted) :]:
            await self._view.client.delete(ENDPOINT_SLICES, *key_of(each))

    def _pods_of(self, service: Object) -> list[Object]:
        selector = service["spec"]["selector"]
        namespace = key_of(service)[0]
        smallest = min((self._pods[namespace, *term] for term in selector.items()), key=len)
        return sorted(
            (
                pod
                for pod in smallest.values()
                if selects(selector, labels_of(pod)) and _ip(pod) and not is_finished(pod)
            ),
            key=key_of,
        )

    def _service_changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(key_of(after))

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and after is not None and _routed(before) == _routed(after):
            return
        for pod in (before, after):
            for term in _label_terms(pod) if pod else ():
                for key, service in self._services[term].items():
                    if pod and selects(service["spec"]["selector"], labels_of(pod)):
                        self.queue.add_after(key, _GATHER_S)


def _first_selector_term(service: Object) -> Iterable[Label]:
    terms = sorted((service["spec"].get("selector") or {}).items())
    return [(key_of(service)[0], *term) for term in terms[:1]]


def _label_terms(pod: Object) -> Iterable[Label]:
    return [(key_of(pod)[0], *term) for term in labels_of(pod).items()]


def _service_of(each: Object) -> Iterable[Key]:
    labels = labels_of(each)
    name = labels.get(_SERVICE_NAME)
    return [(key_of(each)[0], name)] if name and labels.get(_MANAGED_BY) == MANAGER else ()


def _routed(pod: Object) -> tuple[object, ...]:
    """Read all of a pod that an endpoint shows."""
    return (
        _ip(pod),
        is_ready(pod),
        is_finished(pod),
        is_terminating(pod),
        labels_of(pod),
        node_name(pod),
    )


def _ip(pod: Object) -> str | None:
    return (pod.get("status") or {}).get("podIP")


def _is_loopback(address: str | None) -> bool:
    return address is not None and address.startswith("127.")


def _is_listed(pod: Object, service: Object) -> bool:
    always = bool(service["spec"].get("publishNotReadyAddresses"))
    return always or (is_ready(pod) and not is_terminating(pod))


def _target(pod: Object) -> Mapping[str, str]:
    namespace, name = key_of(pod)
    return {"kind": "Pod", "namespace": namespace, "name": name, "uid": pod["metadata"]["uid"]}


def _endpoint(pod: Object, service: Object) -> dict[str, Any]:
    namespace, address = key_of(pod)[0], str(_ip(pod))
    if _is_loopback(address):
        address = f"{address.replace('.', '-')}.{namespace}.pod.cluster.local"
    return {
        "addresses": [address],
        "conditions": {
            "ready": _is_listed(pod, service),
            "serving": is_ready(pod),
            "terminating": is_terminating(pod),
        },
        "nodeName": node_name(pod),
        "targetRef": _target(pod),
    }


def _new_slice(service: Object, kind: str) -> Object:
    namespace, name = key_of(service)
    return {
        "metadata": {
            "generateName": f"{name}-",
            "namespace": namespace,
            "labels": {**labels_of(service), _SERVICE_NAME: name, _MANAGED_BY: MANAGER},
            "ownerReferences": [dict(reference_to(service, SERVICES))],
        },
        "addressType": kind,
    }


def _ports(service: Object, pods: Sequence[Object]) -> list[dict[str, Any]]:
    """Resolve target ports; a name that no pod declares has no port yet."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _number(port.get("targetPort") or port["port"], pods)
        if number is not None:
            protocol = port.get("protocol", "TCP")
            found.append({"name": port.get("name", ""), "port": number, "protocol": protocol})
    return found


def _number(target: int | str, pods: Sequence[Object]) -> int | None:
    if isinstance(target, int):
        return target
    declared = (
        port["containerPort"]
        for pod in pods
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("name") == target
    )
    return next(declared, None)
