"""What a backtest is about, from a cluster or a file, and the walk through its history."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from fleetline.adapters import manifest
from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.discovery import discover
from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.past import Past, PastPods
from fleetline.adapters.prometheus import PrometheusError
from fleetline.adapters.remembering import remembered
from fleetline.adapters.scope import Scope
from fleetline.adapters.snapshot import SnapshotReader
from fleetline.control.ports import Observations, Pod
from fleetline.entrypoints import live
from fleetline.errors import FleetlineError, ManifestError
from fleetline.model.replica import Replica
from fleetline.policy.startup import PRIOR_S
from fleetline.replay.backtest import Backtest, Imagined, Moment, Outcome

WARM_UP_S: Final = 7200.0
"""How far the forecast looks back; before the beginning the policy only watches. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One fleet and what its replicas are made of."""

    one: FleetObject
    replica: Replica | None
    unknown_because: str
    price_usd_per_hour: float | None


async def live_subject(kubeconfig: Path | None, namespace: str, name: str) -> Subject:
    """Read a fleet and discover its replica in the cluster; ManifestError if it is not there."""
    async with live.connected(kubeconfig) as api:
        one = manifest.parse(await live.read_fleet(api, namespace, name))
        view = await SnapshotReader(api, (namespace,)).read()
        cluster = KubernetesCluster(api, load_catalog())
        cluster.look_at(view, [one])
        target = await cluster.read_target(one.fleet)
        replica = target.replica
        price = None if replica is None else cluster.price_usd_per_hour(replica.accelerator.name)
    return Subject(
        one=one,
        replica=replica,
        unknown_because=target.replica_unknown_because,
        price_usd_per_hour=price,
    )


def file_subject(path: Path, namespace: str | None) -> Subject:
    """Read the first ServingFleet of a file; what is not in it is not discovered."""
    try:
        documents = list(yaml.safe_load_all(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ManifestError(f"--fleet must be a YAML file, got {str(path)!r}: {error}") from None
    found = [one for one in documents if isinstance(one, dict) and one.get("kind") == manifest.KIND]
    if not found:
        raise ManifestError(f"--fleet must hold a {manifest.KIND}, got none in {str(path)!r}")
    metadata = found[0].get("metadata") or {}
    place = namespace or metadata.get("namespace") or "default"
    one = manifest.parse({**found[0], "metadata": {**metadata, "namespace": place}})
    catalog = load_catalog()
    found_replica = discover(one.replica, {}, (), catalog)
    replica = found_replica.replica
    return Subject(
        one=one,
        replica=replica,
        unknown_because=found_replica.unknown_because,
        price_usd_per_hour=None
        if replica is None
        else catalog.price_usd_per_hour(replica.accelerator.name),
    )


def startup_of(subject: Subject) -> float:
    """Start-up time that the operator measured, or the prior. [s]"""
    told: Any = (subject.one.status.get("startupTime") or {}).get("p90Seconds")
    try:
        return float(told)
    except (TypeError, ValueError):
        return PRIOR_S


async def outcomes(
    subject: Subject, past: Past, scope: Scope, *, begin_s: float, end_s: float, startup_s: float
) -> AsyncIterator[Outcome]:
    """
    Walk from the warm-up to the end, a turn a step.

    Raises
    ------
    FleetlineError
        If Prometheus shows no pod of the fleet in the whole time, or does not answer at all.
    """
    fleet, period_s = subject.one.fleet, past.step_s
    pods: tuple[Pod, ...] = ()
    engines = EngineMetrics(
        past,
        pods_of=lambda _: pods,
        period_s=period_s,
        scrape_interval_s=period_s,
        clock=lambda: past.now_s,
        ticks=lambda: past.now_s,
        namespace_label=scope.namespace_label,
        pod_label=scope.pod_label,
    )
    engines.look_at([subject.one])
    target = Imagined(
        replica=subject.replica, unknown_because=subject.unknown_because, startup_s=startup_s
    )
    past.now_s = begin_s - WARM_UP_S
    memory = remembered(subject.one, now_s=past.now_s)
    backtest = Backtest(fleet, target, memory, begin_s=begin_s, period_s=period_s)
    looked_for, was_there = PastPods(past, scope, fleet.target), False
    while past.now_s < end_s:
        pods = await looked_for.read()
        was_there = was_there or bool(pods)
        seen = await _seen(engines, subject)
        outcome = await backtest.step(Moment(at_s=past.now_s, pods=pods, seen=seen))
        if outcome is not None:
            yield outcome
        past.now_s += period_s
    if not was_there:
        raise FleetlineError(
            f"Prometheus must show pods of {fleet.target.kind} {fleet.target.name} in namespace "
            f"{fleet.namespace}, got none; `fleetline doctor` says what is missing"
        )


async def _seen(engines: EngineMetrics, subject: Subject) -> Observations | str:
    key = subject.one.fleet.key
    try:
        observed = await engines.observe([subject.one.fleet])
    except PrometheusError as error:
        return str(error)
    return observed.get(key, "not observed")
