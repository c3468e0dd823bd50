"""Can each fleet be scaled: its spec, its target, its accelerator, and who else scales it."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetline.adapters import manifest
from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.discovery import Discovery, Source
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.node_labels import MIG_RESOURCE, RESOURCES, accelerator_of_node
from fleetline.adapters.scale import TargetError
from fleetline.adapters.snapshot import Snapshot
from fleetline.control.ports import Target
from fleetline.entrypoints.checks_permissions import GRANT, AccessReviews, Need
from fleetline.entrypoints.condition_reasons import HINTS, MESSAGE
from fleetline.entrypoints.findings import Finding, failed, ok, warning
from fleetline.errors import FleetlineError, ObservationError
from fleetline.policy.decision import Reason

SHOWN: Final = 3
AT_ONCE: Final = 8
"""Fleets that are looked at side by side: a thousand must not flood the API server."""


@dataclass(frozen=True, slots=True)
class Site:
    """The cluster as it was read, and the ways to ask it more."""

    api: ApiClient
    cluster: KubernetesCluster
    reviews: AccessReviews
    view: Snapshot


def understand(bodies: Sequence[Mapping[str, Any]]) -> tuple[list[FleetObject], list[Finding]]:
    """Parse the fleets; those that cannot be understood become findings."""
    objects, findings = [], []
    for body in bodies:
        namespace, name, _ = manifest.identity_of(body)
        key = f"{namespace}/{name}"
        try:
            objects.append(manifest.parse(body))
        except FleetlineError as error:
            findings.append(failed("spec", key, str(error), HINTS[Reason.INVALID_SPEC]))
        else:
            findings.append(_looked_at(key, body))
    return objects, findings


def check_nodes(site: Site) -> list[Finding]:
    """Which accelerators the cluster's nodes have, and which nodes do not tell."""
    if "nodes" in site.view.refused:
        return []  # the permission says so
    seen: Counter[str] = Counter()
    problems: dict[str, str] = {}
    for name, node in site.view.nodes.items():
        if not _has_accelerator(node["allocatable"]):
            continue
        try:
            found = accelerator_of_node(site.cluster.catalog, node["labels"], node["allocatable"])
        except ObservationError as error:
            problems.setdefault(str(error), name)
        else:
            seen[found.accelerator.name] += found.count
    findings = [
        warning("accelerator", f"node {name}", says, "add an AcceleratorProfile for this label")
        for says, name in problems.items()
    ]
    findings += [
        warning("accelerator", "profile", says, "correct the AcceleratorProfile")
        for says in site.cluster.profile_problems
    ]
    total = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
    if total:
        findings.insert(0, ok("accelerator", "all nodes", total))
    return findings


async def check_fleet(site: Site, one: FleetObject) -> list[Finding]:
    """Look at one fleet's target, what its replicas are made of, and its rivals."""
    key = one.fleet.key
    subject = f"{one.fleet.target.kind} {one.fleet.target.name} of {key}"
    try:
        target = await site.cluster.read_target(one.fleet)
        path = await site.cluster.scales.path(one.fleet)
        scale = await site.api.get(path)
    except TargetError as error:
        return [failed("target", subject, str(error), HINTS.get(error.reason, MESSAGE))]
    except ObservationError as error:
        return [failed("target", subject, str(error), "look at the API server")]
    found = site.cluster.discoveries[key]
    return [
        _scalable(subject, target, scale),
        await _may_scale(site, one, path),
        *_rival(key, target),
        _accelerator(key, found, site.view),
        _replica(key, target, found),
    ]


def _looked_at(key: str, body: Mapping[str, Any]) -> Finding:
    generation = (body.get("metadata") or {}).get("generation")
    seen = (body.get("status") or {}).get("observedGeneration")
    if seen is None:
        return warning(
            "operator",
            key,
            "no operator has looked at it yet",
            "start one that serves this namespace, and read its log",
        )
    if seen != generation:
        return warning(
            "operator",
            key,
            f"its status answers to generation {seen}, the spec is at {generation}",
            "wait for a turn; if it stays, read the operator's log",
        )
    return ok("operator", key, "the last spec was seen")


def _scalable(subject: str, target: Target, scale: Mapping[str, Any]) -> Finding:
    if target.replicas == 0:
        hint = HINTS[Reason.SCALING_DISABLED]
        return warning("target", subject, "it has 0 replicas: scaling is off", hint)
    if not target.pods and not (scale.get("status") or {}).get("selector"):
        says = "its scale tells no selector: its pods and their series are not found"
        mend = "have its controller set the field of labelSelectorPath"
        return warning("target", subject, says, mend)
    ready = sum(pod.ready_since_s is not None for pod in target.pods)
    return ok("target", subject, f"scalable, {target.replicas} replicas, {ready} pods ready")


async def _may_scale(site: Site, one: FleetObject, path: str) -> Finding:
    """Ask for the scale of this very object: kinds differ, and so may roles."""
    plural = path.split("/")[-3]
    group = one.fleet.target.api_version.rpartition("/")[0]
    need = Need(group=group, resource=f"{plural}/scale", verbs=("get", "patch"))
    subject = f"scale of {plural}/{one.fleet.target.name} in {one.fleet.namespace}"
    try:
        missing = await site.reviews.missing(
            need, namespace=one.fleet.namespace, name=one.fleet.target.name
        )
    except ObservationError as error:
        mend = "run doctor as a user who may create reviews"
        return warning("permission", subject, str(error), mend)
    if missing:
        return failed("permission", subject, f"may not {', '.join(missing)}", GRANT)
    return ok("permission", subject, "get, patch")


def _rival(key: str, target: Target) -> list[Finding]:
    if not target.conflicts_with:
        return [ok("rivals", key, "nothing else scales its target")]
    reason = (
        Reason.CONFLICTING_OWNER
        if target.conflicts_with.startswith(manifest.KIND)
        else Reason.CONFLICTING_AUTOSCALER
    )
    says = f"{target.conflicts_with} scales the same target: Fleetline leaves it alone"
    return [failed("rivals", key, says, HINTS[reason])]


def _accelerator(key: str, found: Discovery, view: Snapshot) -> Finding:
    told = next((one for one in found.found if one.name == "accelerator.name"), None)
    if told is None or told.source is Source.UNKNOWN:
        says = "" if told is None else told.detail
        if "nodes" in view.refused:
            says = f"{says}; nodes may not be read"
        return failed("accelerator", key, says or "unknown", HINTS["ReplicaUnknown"])
    if len(found.accelerator_names) > 1:
        says = f"{', '.join(found.accelerator_names)}: all are sized as {told.value}, the slowest"
        return warning("accelerator", key, says, "one fleet for each type would use them better")
    return ok("accelerator", key, f"{told.value}, from {told.detail or told.source}")


def _replica(key: str, target: Target, found: Discovery) -> Finding:
    if target.replica is None:
        says = target.replica_unknown_because
        return failed("replica", key, says, HINTS["ReplicaUnknown"])
    assumed = [one.name for one in found.found if one.source is Source.DEFAULT]
    says = f"{target.replica.architecture.name} on {target.replica.accelerators} accelerators"
    if assumed:
        more = len(assumed) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        says = f"{says}; engine's defaults for {', '.join(assumed[:SHOWN])}{rest}"
    return ok("replica", key, says)


def _has_accelerator(allocatable: Mapping[str, str]) -> bool:
    return any(
        amount not in ("", "0")
        for name, amount in allocatable.items()
        if name in RESOURCES or name.startswith(MIG_RESOURCE)
    )


async def check_fleets(site: Site, objects: Sequence[FleetObject]) -> list[Finding]:
    """Look at all fleets, a few at a time."""
    slots = asyncio.Semaphore(AT_ONCE)
    found = await asyncio.gather(*(_in_turn(slots, site, one) for one in objects))
    return [finding for findings in found for finding in findings]


async def _in_turn(slots: asyncio.Semaphore, site: Site, one: FleetObject) -> list[Finding]:
    async with slots:
        return await check_fleet(site, one)
