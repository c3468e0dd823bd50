"""The arithmetic of a rolling update: how large each ReplicaSet of a Deployment shall be next.

Never more than `replicas + maxSurge` pods, never fewer than `replicas - maxUnavailable` available.
Follows the published behaviour of the Deployment controller (Kubernetes documentation, Deployments,
"Rolling Update Deployment" and "Proportional scaling").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One ReplicaSet as the arithmetic sees it."""

    name: str
    replicas: int
    available: int = 0
    created: str = ""
    planned_maximum: int | None = None
    """Replicas plus surge of the Deployment when this set was sized last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What `spec.strategy.rollingUpdate` allows."""

    replicas: int
    max_surge: int
    max_unavailable: int

    @property
    def maximum(self) -> int:
        """Most pods at any time; none at all when nothing is asked for."""
        return self.replicas + self.max_surge if self.replicas else 0

    @property
    def min_available(self) -> int:
        """Fewest pods that must be available at any time."""
        return self.replicas - self.max_unavailable


def resolve(replicas: int, *, surge: int | str, unavailable: int | str) -> Bounds:
    """Turn `25%` into pods: surge is rounded up, unavailable down, and both are never zero."""
    max_surge = _absolute(surge, replicas, math.ceil)
    max_unavailable = min(_absolute(unavailable, replicas, math.floor), replicas)
    if max_surge == 0 and max_unavailable == 0:
        max_unavailable = 1
    return Bounds(replicas=replicas, max_surge=max_surge, max_unavailable=max_unavailable)


def grow_new(new: Size, old: Sequence[Size], bounds: Bounds) -> int:
    """Size of the newest set, given what the others still hold."""
    if new.replicas >= bounds.replicas:
        return bounds.replicas
    held = new.replicas + sum(each.replicas for each in old)
    return new.replicas + max(0, min(bounds.maximum - held, bounds.replicas - new.replicas))


def shrink_old(new: Size, old: Sequence[Size], bounds: Bounds) -> dict[str, int]:
    """Sizes of the older sets: first without their unavailable pods, then as few as is safe."""
    held = new.replicas + sum(each.replicas for each in old)
    new_unavailable = new.replicas - new.available
    removable = max(0, held - bounds.min_available - new_unavailable)
    sizes = {each.name: each.replicas for each in old}
    oldest_first = sorted(old, key=lambda each: each.created)
    unavailable_left = removable
    for each in oldest_first:
        gone = min(unavailable_left, each.replicas - each.available)
        sizes[each.name] -= gone
        unavailable_left -= gone
    available = new.available + sum(each.available for each in old)
    spare = min(max(0, available - bounds.min_available), unavailable_left)
    for each in oldest_first:
        gone = min(spare, sizes[each.name])
        sizes[each.name] -= gone
        spare -= gone
    return sizes


def spread(sets: Sequence[Size], bounds: Bounds) -> dict[str, int]:
    """Sizes after the Deployment was scaled in the middle of a rollout: in proportion to now.

    What rounding leaves over goes to the largest set.
    """
    active = [each for each in sets if each.replicas > 0]
    if len(active) == 1:
        return {active[0].name: bounds.replicas}
    left = bounds.maximum - sum(each.replicas for each in active)
    by_age = sorted(active, key=lambda each: each.created, reverse=left > 0)
    ordered = sorted(by_age, key=lambda each: each.replicas, reverse=True)
    sizes = {each.name: each.replicas for each in active}
    remaining = left
    for each in ordered:
        share = _share(each, bounds, left=left, remaining=remaining)
        sizes[each.name] += share
        remaining -= share
    if ordered:
        sizes[ordered[0].name] = max(0, sizes[ordered[0].name] + remaining)
    return sizes


def _share(each: Size, bounds: Bounds, *, left: int, remaining: int) -> int:
    if left == 0 or each.replicas == 0 or remaining == 0:
        return 0
    if bounds.replicas == 0:
        return -each.replicas
    before = each.planned_maximum or bounds.maximum
    exact = each.replicas * bounds.maximum / before - each.replicas
    rounded = math.floor(abs(exact) + 0.5) * (1 if exact >= 0 else -1)
    return min(rounded, remaining) if left > 0 else max(rounded, remaining)


def _absolute(value: int | str, of: int, rounding: Callable[[float], int]) -> int:
    if isinstance(value, str):
        return rounding(int(value.removesuffix("%")) * of / 100)
    return value
