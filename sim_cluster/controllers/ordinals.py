"""Which pods of a StatefulSet come and go next.

OrderedReady: a pod is made only when all before it are available, and scale-down goes from the
end, one at a time. Parallel: at once. Updates go from the end down to `partition`, one at a time,
in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim_cluster.controllers.pod_template import pod_of
from sim_cluster.resources import STATEFUL_SETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sim_cluster.api_client import Object

REVISION_LABEL = "controller-revision-hash"
_NAME_LABEL, _INDEX_LABEL = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One existing pod, as the order sees it."""

    name: str
    revision: str
    is_available: bool
    is_going: bool
    is_finished: bool

    @property
    def ordinal(self) -> int:
        """Its place in the order."""
        return int(self.name.rpartition("-")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Pods to make, as ordinal and revision, and the names of pods to delete."""

    create: Sequence[tuple[int, str]] = ()
    delete: frozenset[str] = frozenset()


def plan(owner: Object, replicas: Sequence[Replica], *, current: str, update: str) -> Plan:
    """Say what may be done now; called again whenever a pod has changed."""
    spec = owner["spec"]
    start = int((spec.get("ordinals") or {}).get("start") or 0)
    wanted = range(start, start + int(spec.get("replicas", 1)))
    by_ordinal = {each.ordinal: each for each in replicas}
    is_parallel = spec.get("podManagementPolicy") == "Parallel"
    ended = {each.name for each in replicas if each.is_finished and not each.is_going}
    if ended:  # replaced under the same name
        return Plan(delete=frozenset(ended))
    partition = _partition(owner)
    create: list[tuple[int, str]] = []
    for ordinal in wanted:
        existing = by_ordinal.get(ordinal)
        if existing is None:
            create.append((ordinal, update if ordinal >= partition else current))
        if not is_parallel and (existing is None or not _is_steady(existing)):
            return Plan(create=create)
    surplus = sorted((each for each in replicas if each.ordinal not in wanted), key=_from_the_end)
    if create or surplus:
        return Plan(create=create, delete=_next_surplus(surplus, is_parallel=is_parallel))
    return Plan(delete=_next_outdated(owner, by_ordinal, wanted, update=update))


def pod_at(owner: Object, template: Object, *, ordinal: int, revision: str) -> Object:
    """Make the pod of one ordinal."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    body = pod_of(template, owner, STATEFUL_SETS)
    body["metadata"]["name"] = name
    body["metadata"]["labels"] |= {
        REVISION_LABEL: revision,
        _NAME_LABEL: name,
        _INDEX_LABEL: str(ordinal),
    }
    body["spec"] |= {"hostname": name, "subdomain": owner["spec"].get("serviceName") or ""}
    return body


def _partition(owner: Object) -> int:
    strategy = owner["spec"].get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def _is_steady(replica: Replica) -> bool:
    return replica.is_available and not replica.is_going


def _from_the_end(replica: Replica) -> int:
    return -replica.ordinal


def _next_surplus(surplus: Sequence[Replica], *, is_parallel: bool) -> frozenset[str]:
    if is_parallel:
        return frozenset(each.name for each in surplus if not each.is_going)
    if any(each.is_going for each in surplus):
        return frozenset()
    return frozenset(each.name for each in surplus[:1])


def _next_outdated(
    owner: Object, by_ordinal: Mapping[int, Replica], wanted: range, *, update: str
) -> frozenset[str]:
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return frozenset()
    for ordinal in reversed(wanted):
        replica = by_ordinal[ordinal]
        if ordinal < _partition(owner):
            break
        if replica.revision != update and not replica.is_going:
            return frozenset({replica.name})
        if not _is_steady(replica):
            break
    return frozenset()
