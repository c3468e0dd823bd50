"""The scheduler: binds waiting pods to the emptiest node that may and can take them.

Pods of one template have one need. What a need's labels and taints allow is worked out once until
a node changes. A need that found no room is closed until room appears; then one of its pods tries,
and the next only if that one fitted. So the work does not grow with the number of pods that wait.
"""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from sim_cluster import times
from sim_cluster.api_client import ApiError, Object
from sim_cluster.controllers.placement import Need, Seat, refusal
from sim_cluster.controllers.view import event_about
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import condition, is_finished, is_terminating, node_name
from sim_cluster.quantity import requests_of
from sim_cluster.resources import NODES, POD_BINDINGS, PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.controllers.view import View
    from sim_cluster.informer import Key

_LOG = logging.getLogger(__name__)
NAME = "default-scheduler"
# As many nodes that fit are compared before the emptiest is taken (the real one also samples).
_CANDIDATES = 32


class Scheduler:
    """Binds pods, one key at a time or several at once: a seat is taken before the API is asked."""

    name = "scheduler"

    def __init__(self, view: View) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._view = view
        self._seats: dict[str, Seat] = {}
        self._taken: dict[str, tuple[str, dict[str, float]]] = {}
        self._taken_on: dict[str, set[str]] = {}
        self._allowed: dict[str, list[Seat]] = {}
        self._closed: dict[str, str] = {}
        self._waiting: dict[str, dict[Key, None]] = {}
        self._need_of: dict[Key, str] = {}
        self._start = itertools.count()
        view.informer(NODES).on_change(self._node_changed)
        view.informer(PODS).on_change(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        """Bind one pod, or say on it why that is impossible now."""
        pod = self._view.get(PODS, key)
        if pod is None or not _wants_node(pod) or pod["metadata"]["uid"] in self._taken:
            return
        need = Need.of(pod)
        seat = None if need.key in self._closed else self._choose(need)
        if seat is None:
            self._waiting.setdefault(need.key, {})[key] = None
            self._need_of[key] = need.key
            if need.key not in self._closed:
                self._closed[need.key] = refusal(need, list(self._seats.values()))
            await self._refuse(pod, self._closed[need.key])
            return
        self._stop_waiting(key)
        self._wake(need.key)
        await self._bind(pod, seat, dict(need.asked))

    def _choose(self, need: Need) -> Seat | None:
        allowed = self._allowed.get(need.key)
        if allowed is None:
            allowed = [seat for seat in self._seats.values() if need.objection(seat.node) is None]
            self._allowed[need.key] = allowed
        fitting = itertools.islice(
            (seat for seat in self._rotated(allowed) if not seat.shortages(need.asked)),
            _CANDIDATES,
        )
        return min(fitting, key=lambda seat: (seat.fullness(need.asked), seat.pods), default=None)

    def _rotated(self, seats: Sequence[Seat]) -> Sequence[Seat]:
        """Start at another node each time, where only a sample will be looked at."""
        if len(seats) <= _CANDIDATES:
            return seats
        start = next(self._start) * _CANDIDATES % len(seats)
        return [*seats[start:], *seats[:start]]

    async def _bind(self, pod: Object, seat: Seat, asked: dict[str, float]) -> None:
        node, uid = seat.node["metadata"]["name"], pod["metadata"]["uid"]
        namespace, name = key_of(pod)
        self._take(uid, node, asked)
        body = {
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._view.client.create(POD_BINDINGS, body, subresource="binding")
        except ApiError as error:
            self._give_back(uid)
            if error.status != 404:  # deleted in the meantime
                raise
            return
        except BaseException:
            self._give_back(uid)
            raise
        message = f"Successfully assigned {namespace}/{name} to {node}"
        self._view.send(_event(pod, "Scheduled", message, "Normal", "Binding"))

    async def _refuse(self, pod: Object, message: str) -> None:
        before = condition(pod, "PodScheduled")
        if before is not None and before.get("message") == message:
            return
        since = before["lastTransitionTime"] if before else times.now()
        entry = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        others = [
            each
            for each in (pod.get("status") or {}).get("conditions") or ()
            if each["type"] != "PodScheduled"
        ]
        metadata = {"uid": pod["metadata"]["uid"]}
        status = {"metadata": metadata, "status": {"conditions": [*others, entry]}}
        await self._view.patch(PODS, key_of(pod), status, subresource="status")
        self._view.send(_event(pod, "FailedScheduling", message, "Warning", "Scheduling"))

    def _take(self, uid: str, node: str, asked: dict[str, float]) -> None:
        self._taken[uid] = (node, asked)
        self._taken_on.setdefault(node, set()).add(uid)
        if node in self._seats:
            self._seats[node].take(asked)

    def _give_back(self, uid: str) -> None:
        node, asked = self._taken.pop(uid)
        self._taken_on[node].discard(uid)
        if node in self._seats:
            self._seats[node].give_back(asked)
        self._room_appeared()

    def _room_appeared(self) -> None:
        self._closed.clear()
        for need in self._waiting:
            self._wake(need)

    def _wake(self, need: str) -> None:
        for first in itertools.islice(self._waiting.get(need, ()), 1):
            self.queue.add(first)

    def _stop_waiting(self, key: Key) -> None:
        need = self._need_of.pop(key, None)
        if need is not None:
            del self._waiting[need][key]
            if not self._waiting[need]:
                del self._waiting[need]

    def _node_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and after is not None and _seat_fields(before) == _seat_fields(after):
            return
        self._allowed.clear()
        if after is None:
            if before is not None:
                self._seats.pop(before["metadata"]["name"], None)
        else:
            name = after["metadata"]["name"]
            seat = self._seats[name] = Seat.of(after)
            for uid in self._taken_on.get(name, ()):
                seat.take(self._taken[uid][1])
        self._room_appeared()

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and (
            after is None or before["metadata"]["uid"] != after["metadata"]["uid"]
        ):
            self._leave(before)
        if after is None:
            return
        uid, node = after["metadata"]["uid"], node_name(after)
        if is_finished(after):
            self._leave(after)
        elif node is not None:
            if uid not in self._taken:
                self._take(uid, node, requests_of(after))
        elif before is None or before["metadata"]["uid"] != uid or _differs(before, after):
            self.queue.add(key_of(after))

    def _leave(self, pod: Object) -> None:
        need = self._need_of.get(key_of(pod))
        self._stop_waiting(key_of(pod))
        if need is not None:
            self._wake(need)
        if pod["metadata"]["uid"] in self._taken:
            self._give_back(pod["metadata"]["uid"])


def _wants_node(pod: Object) -> bool:
    spec = pod["spec"]
    return (
        node_name(pod) is None
        and not is_terminating(pod)
        and not is_finished(pod)
        and spec.get("schedulerName", NAME) == NAME
        and not spec.get("schedulingGates")
    )


def _differs(before: Object, after: Object) -> bool:
    return bool(before["spec"] != after["spec"])


def _seat_fields(node: Object) -> tuple[object, ...]:
    status = node.get("status") or {}
    spec = node.get("spec") or {}
    return (
        node["metadata"].get("labels"),
        spec.get("taints"),
        spec.get("unschedulable"),
        status.get("allocatable"),
        status.get("capacity"),
    )


def _event(pod: Object, reason: str, message: str, kind: str, action: str) -> Object:
    event = event_about(pod, PODS, reason, message, kind)
    return {
        **event,
        "action": action,
        "reportingComponent": NAME,
        "reportingInstance": f"{NAME}-sim",
    }
