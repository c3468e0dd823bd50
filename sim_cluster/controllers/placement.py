"""May this pod run on that node, and if on none: why not, in the real scheduler's words."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim_cluster.quantity import parse, requests_of
from sim_cluster.selectors import labels_of, meets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sim_cluster.api_client import Object

# Rounding of sums of decimal fractions (ten times 0.1 cores) must not keep a pod out.
_SLACK = 1e-6

UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
TOO_MANY_PODS = "Too many pods"


@dataclass(slots=True)
class Seat:
    """One node with what its pods have taken of it."""

    node: Object
    allocatable: dict[str, float]
    used: dict[str, float] = field(default_factory=dict)
    pods: int = 0

    @classmethod
    def of(cls, node: Object) -> Seat:
        """Read a node's `status.allocatable`, or its capacity where that is absent."""
        status = node.get("status") or {}
        listed = status.get("allocatable") or status.get("capacity") or {}
        return cls(node=node, allocatable={name: parse(text) for name, text in listed.items()})

    def take(self, asked: Mapping[str, float]) -> None:
        """Add a pod."""
        self.pods += 1
        for name, value in asked.items():
            self.used[name] = self.used.get(name, 0.0) + value

    def give_back(self, asked: Mapping[str, float]) -> None:
        """Remove a pod."""
        self.pods -= 1
        for name, value in asked.items():
            self.used[name] = self.used.get(name, 0.0) - value

    def shortages(self, asked: Mapping[str, float]) -> list[str]:
        """Say what is missing here for a pod that asks for this much; empty where it fits."""
        lacking = [TOO_MANY_PODS] if self.pods + 1 > self.allocatable.get("pods", 0.0) else []
        for name, value in asked.items():
            free = self.allocatable.get(name, 0.0) - self.used.get(name, 0.0)
            if value > free + _SLACK:
                lacking.append(f"Insufficient {name}")
        return lacking

    def fullness(self, asked: Mapping[str, float]) -> float:
        """Mean share taken of the resources asked for, were the pod here: less is better."""
        shares = [
            (self.used.get(name, 0.0) + value) / self.allocatable[name]
            for name, value in asked.items()
            if self.allocatable.get(name)
        ]
        return sum(shares) / len(shares) if shares else self.pods / 1e6


@dataclass(frozen=True, slots=True)
class Need:
    """All of a pod that decides where it can go; pods of one template have the same need."""

    key: str
    asked: Mapping[str, float]
    selector: Mapping[str, str]
    affinity: Sequence[Mapping[str, Any]]
    tolerations: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, pod: Object) -> Need:
        """Read a pod's requests, node selector, required node affinity and tolerations."""
        spec = pod["spec"]
        node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        asked = {name: value for name, value in requests_of(pod).items() if value > 0}
        selector = spec.get("nodeSelector") or {}
        terms = required.get("nodeSelectorTerms") or []
        tolerations = spec.get("tolerations") or []
        key = json.dumps([asked, selector, terms, tolerations], sort_keys=True)
        return cls(key, asked, selector, terms, tolerations)

    def objection(self, node: Object) -> str | None:
        """Say why the pod may never run on the node however empty it is; None if it may."""
        spec = node.get("spec") or {}
        if spec.get("unschedulable") and not self._tolerates(_CORDON):
            return UNSCHEDULABLE
        taints = spec.get("taints") or ()
        if any(not self._tolerates(taint) for taint in taints if taint["effect"] in _HARD):
            return TAINTED
        labels = labels_of(node)
        if any(labels.get(key) != value for key, value in self.selector.items()):
            return NOT_SELECTED
        if self.affinity and not any(_accepts(term, node) for term in self.affinity):
            return NOT_SELECTED
        return None

    def _tolerates(self, taint: Mapping[str, Any]) -> bool:
        return any(_covers(toleration, taint) for toleration in self.tolerations)


_HARD = {"NoSchedule", "NoExecute"}
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _covers(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _accepts(term: Mapping[str, Any], node: Object) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = {"metadata.name": node["metadata"]["name"]}
    return all(meets(each, labels_of(node)) for each in expressions) and all(
        meets(each, named) for each in fields
    )


def refusal(need: Need, seats: Sequence[Seat]) -> str:
    """Explain why no node takes the pod, as the real scheduler's event does."""
    if not seats:
        return "no nodes available to schedule pods"
    reasons: Counter[str] = Counter()
    hopeless = 0
    for seat in seats:
        objection = need.objection(seat.node)
        lacking = [objection] if objection else seat.shortages(need.asked)
        reasons.update(lacking)
        hopeless += objection is not None or _never_fits(need, seat)
    counts = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    total = len(seats)
    victims = {
        "No preemption victims found for incoming pod": total - hopeless,
        "Preemption is not helpful for scheduling": hopeless,
    }
    told = ", ".join(f"{count} {reason}" for reason, count in victims.items() if count)
    none = f"0/{total} nodes are available"
    return f"{none}: {counts}. preemption: {none}: {told}."


def _never_fits(need: Need, seat: Seat) -> bool:
    return any(
        value > seat.allocatable.get(name, 0.0) + _SLACK for name, value in need.asked.items()
    )
