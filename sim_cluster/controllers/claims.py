"""Whose pods: those that point at the owner and fit, and fitting ones that nobody has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_cluster.controllers.view import reference_to
from sim_cluster.informer import key_of
from sim_cluster.pods import is_active, is_terminating
from sim_cluster.resources import PODS
from sim_cluster.selectors import labels_of, matches

if TYPE_CHECKING:
    from sim_cluster.api_client import Object
    from sim_cluster.controllers.view import View
    from sim_cluster.resources import Resource


async def claimed_pods(view: View, owner: Object, resource: Resource) -> list[Object]:
    """List an owner's pods, after it has released what no longer fits and adopted what does."""
    selector = owner["spec"]["selector"]
    kept = []
    for pod in list(view.pods_by_owner[owner["metadata"]["uid"]].values()):
        if matches(selector, labels_of(pod)):
            kept.append(pod)
        elif not is_terminating(owner):
            await _release(view, pod, owner)
    if not is_terminating(owner):
        orphans = list(view.orphan_pods[owner["metadata"]["namespace"]].values())
        fitting = [pod for pod in orphans if matches(selector, labels_of(pod)) and is_active(pod)]
        kept += [await _adopt(view, pod, owner, resource) for pod in fitting]
    return kept


async def _release(view: View, pod: Object, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    rest = [each for each in pod["metadata"]["ownerReferences"] if each["uid"] != uid]
    await _set_owners(view, pod, rest)


async def _adopt(view: View, pod: Object, owner: Object, resource: Resource) -> Object:
    others = pod["metadata"].get("ownerReferences") or []
    return await _set_owners(view, pod, [*others, dict(reference_to(owner, resource))])


async def _set_owners(view: View, pod: Object, references: list[Object]) -> Object:
    metadata = {"uid": pod["metadata"]["uid"], "ownerReferences": references or None}
    return await view.patch(PODS, key_of(pod), {"metadata": metadata})
