"""The versions of a Deployment: its ReplicaSets, their numbers, and how the next one looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_cluster.controllers import rollout
from sim_cluster.controllers.pod_template import TEMPLATE_HASH, hash_of, with_labels, without_hash
from sim_cluster.controllers.rollout import Size
from sim_cluster.controllers.view import reference_to
from sim_cluster.pods import is_terminating
from sim_cluster.resources import DEPLOYMENTS
from sim_cluster.selectors import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim_cluster.api_client import Object

_PREFIX = "deployment.kubernetes.io/"
REVISION = f"{_PREFIX}revision"
DESIRED, MAXIMUM = f"{_PREFIX}desired-replicas", f"{_PREFIX}max-replicas"
_NOT_COPIED = {"kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MAXIMUM}


def newest(deployment: Object, sets: Sequence[Object]) -> Object | None:
    """Find the ReplicaSet that has the Deployment's template; the oldest, if there are twins."""
    template = without_hash(deployment["spec"]["template"])
    same = [each for each in sets if without_hash(each["spec"]["template"]) == template]
    return min(same, key=lambda each: each["metadata"]["creationTimestamp"], default=None)


def replica_set(
    deployment: Object, replicas: int, allowed: rollout.Bounds, number: int, collisions: int
) -> Object:
    """Compose the ReplicaSet for the Deployment's template as it is now."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    name = hash_of(spec["template"], collisions=collisions)
    template = with_labels(spec["template"], {TEMPLATE_HASH: name})
    copied = metadata.get("annotations") or {}
    wanted = {**(spec["selector"].get("matchLabels") or {}), TEMPLATE_HASH: name}
    return {
        "metadata": {
            "name": f"{metadata['name']}-{name}",
            "namespace": metadata["namespace"],
            "labels": dict(labels_of(template)),
            "annotations": {
                **{key: value for key, value in copied.items() if key not in _NOT_COPIED},
                **planned(allowed),
                REVISION: str(number),
            },
            "ownerReferences": [dict(reference_to(deployment, DEPLOYMENTS))],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {**spec["selector"], "matchLabels": wanted},
            "template": template,
        },
    }


def bounds(deployment: Object) -> rollout.Bounds:
    """Read what `spec.strategy` allows; a Recreate never has both versions at once."""
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    if strategy(deployment) == "Recreate":
        return rollout.Bounds(replicas=replicas, max_surge=0, max_unavailable=0)
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge, unavailable = rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%")
    return rollout.resolve(replicas, surge=surge, unavailable=unavailable)


def strategy(deployment: Object) -> str:
    """Read the kind of strategy."""
    return str((deployment["spec"].get("strategy") or {}).get("type") or "RollingUpdate")


def planned(allowed: rollout.Bounds) -> dict[str, str]:
    """Compose the annotations that say what a set was sized for."""
    return {DESIRED: str(allowed.replicas), MAXIMUM: str(allowed.replicas + allowed.max_surge)}


def was_scaled(deployment: Object, sets: Sequence[Object]) -> bool:
    """Whether `spec.replicas` differs from what the sets were sized for."""
    replicas = str(deployment["spec"].get("replicas", 1))
    sized_for = [
        (each["metadata"].get("annotations") or {}).get(DESIRED)
        for each in sets
        if size(each).replicas > 0
    ]
    return any(count is not None and count != replicas for count in sized_for)


def size(each: Object) -> Size:
    """Read a ReplicaSet for the arithmetic of rollouts."""
    maximum = (each["metadata"].get("annotations") or {}).get(MAXIMUM)
    return Size(
        name=each["metadata"]["name"],
        replicas=int(each["spec"].get("replicas", 1)),
        available=int((each.get("status") or {}).get("availableReplicas") or 0),
        created=each["metadata"]["creationTimestamp"],
        planned_maximum=int(maximum) if maximum else None,
    )


def is_empty(each: Object) -> bool:
    """Whether nothing is left of it, and it may be forgotten."""
    held = int((each.get("status") or {}).get("replicas") or 0)
    return size(each).replicas == 0 and held == 0 and not is_terminating(each)


def revision(item: Object) -> int:
    """Read the number of a version; 0 before it has one."""
    return int((item["metadata"].get("annotations") or {}).get(REVISION) or 0)


def last_revision(sets: Sequence[Object]) -> int:
    """Find the highest number in use."""
    return max(map(revision, sets), default=0)
