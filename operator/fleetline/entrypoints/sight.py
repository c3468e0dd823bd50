"""What Prometheus shows of all fleets at one moment, and why a fleet may see none of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetline.adapters import queries
from fleetline.adapters.engine_metrics import Quantity
from fleetline.adapters.engines import EngineMetrics, Evidence
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.prometheus import Prometheus
from fleetline.adapters.scope import Scope
from fleetline.control.ports import Observations, Pod
from fleetline.entrypoints.findings import Finding, failed

SCRAPE: Final = "let Prometheus scrape the pods of the target (PodMonitor or ServiceMonitor)"
MOST_PODS: Final = 3
"""Pods that are named, or asked for their samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What Prometheus shows, and how it was asked."""

    prometheus: Prometheus
    scope: Scope
    window_s: float
    period_s: float
    """Time between decisions. [s]"""
    names: Mapping[str, frozenset[str]]
    """Names of candidate metrics that exist, by namespace."""
    strays: frozenset[str]
    """Names that exist anywhere, whatever their labels."""
    observations: Mapping[str, Observations]
    evidence: Mapping[str, Evidence]

    def scope_of(self, one: FleetObject) -> Scope:
        """What queries about one fleet share."""
        return replace(self.scope, namespaces=(one.fleet.namespace,), window_s=self.window_s)


async def look(
    prometheus: Prometheus,
    engines: EngineMetrics,
    objects: Sequence[FleetObject],
    scope: Scope,
    *,
    period_s: float,
) -> Sight:
    """
    Ask what the operator asks, and which names exist.

    Raises
    ------
    PrometheusError
        If it gives no usable answer.
    """
    fleets = [one.fleet for one in objects]
    everywhere = Scope(namespaces=(), namespace_label="__name__")  # every series has a name
    engines.look_at(objects)
    return Sight(
        prometheus=prometheus,
        scope=scope,
        names={
            namespace: await _names(prometheus, replace(scope, namespaces=(namespace,)))
            for namespace in sorted({fleet.namespace for fleet in fleets})
        },
        strays=await _names(prometheus, everywhere),
        observations=await engines.observe(fleets),
        evidence=engines.evidence,
        window_s=engines.window_s,
        period_s=period_s,
    )


async def _names(prometheus: Prometheus, scope: Scope) -> frozenset[str]:
    answer = await prometheus.query(queries.existing_names(scope))
    return frozenset(row.labels.get("__name__", "") for row in answer.rows)


async def diagnose(sight: Sight, one: FleetObject, ready: Sequence[Pod]) -> Finding:
    """Say why no series of running requests belongs to the fleet's pods."""
    key, scope = one.fleet.key, sight.scope_of(one)
    wanted = queries.names_of(Quantity.RUNNING)
    here = sight.names[one.fleet.namespace].intersection(wanted)
    if not sight.strays.intersection(wanted):
        says = f"there is none of {', '.join(wanted)}"
        return failed("series", key, says, SCRAPE)
    if not here:
        says = f'series exist, but none with {scope.namespace_label}="{one.fleet.namespace}"'
        mend = f"{SCRAPE}; or relabel, or set --namespace-label to the label that holds it"
        return failed("labels", key, says, mend)
    rows = (await sight.prometheus.query(queries.pod_gauges(scope, here))).rows
    pods = sorted({row.labels.get(scope.pod_label, "") for row in rows})
    if pods == [""]:
        says = f"series of {one.fleet.namespace} have no label {scope.pod_label}"
        mend = "relabel the pod's name onto it, or set --pod-label to the label that holds it"
        return failed("labels", key, says, mend)
    models = sorted({row.labels.get(label, "") for row in rows for label in scope.model_labels})
    if one.metrics.model_name and one.metrics.model_name not in models:
        told = ", ".join(name for name in models if name) or "none"
        says = f"no series is of model {one.metrics.model_name}; there are: {told}"
        return failed("labels", key, says, "correct spec.metrics.modelName or modelLabel")
    says = (
        f"series are of pods {', '.join(pods[:MOST_PODS])}; "
        f"the target's are {', '.join(pod.name for pod in ready[:MOST_PODS])}"
    )
    return failed("labels", key, says, SCRAPE)
