"""Does Prometheus hold what decisions need: for each fleet, which series, how fresh, and whose."""

from collections.abc import Sequence
from typing import Final

from fleetline.adapters import queries
from fleetline.adapters.arrivals import gateway_label
from fleetline.adapters.engine_metrics import LATENCIES, Quantity
from fleetline.adapters.engines import Evidence
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.prometheus import PrometheusError
from fleetline.adapters.readings import scrape_interval_s
from fleetline.control.evidence import MOST_SKEW_S, Gap
from fleetline.control.ports import Observations, Pod
from fleetline.entrypoints.condition_reasons import HINTS
from fleetline.entrypoints.findings import Finding, failed, ok, warning
from fleetline.entrypoints.sight import MOST_PODS, Sight, diagnose

CHECK: Final = "series"
SUSPECT_SKEW_S: Final = 5.0
"""NTP holds a second. [s]"""


def unreachable(url: str, error: PrometheusError) -> Finding:
    """Prometheus gave no usable answer."""
    return failed("prometheus", url, str(error), HINTS[error.failure])


def check_clock(url: str, skew_s: float | None) -> list[Finding]:
    """Compare the clock of Prometheus with ours, from its Date header."""
    if skew_s is None:
        return [warning("clock", url, "it sends no Date header", "check a proxy in between")]
    says = f"{skew_s:+.1f} s from this machine's"
    if abs(skew_s) > MOST_SKEW_S:
        return [failed("clock", url, says, HINTS[Gap.CLOCK_SKEW])]
    if abs(skew_s) >= SUSPECT_SKEW_S:
        return [warning("clock", url, says, "run NTP on both machines")]
    return [ok("clock", url, says)]


async def check_series(sight: Sight, one: FleetObject, pods: Sequence[Pod]) -> list[Finding]:
    """Look at the series of one fleet."""
    key = one.fleet.key
    ready = [pod for pod in pods if pod.ready_since_s is not None and not pod.is_terminating]
    evidence = sight.evidence.get(key)
    if evidence is None or Quantity.RUNNING not in evidence.sources:
        if not ready:
            says = "no pod of its target is ready: nothing to look for"
            return [warning(CHECK, key, says, "start the pods, and run doctor again")]
        return [await diagnose(sight, one, ready)]
    seen = sight.observations[key]
    names = sight.names[one.fleet.namespace]
    labels = f"{sight.scope.namespace_label} and {sight.scope.pod_label} name the target's pods"
    return [
        ok("labels", key, labels),
        *_sources(one, evidence, names),
        _coverage(key, seen, ready),
        await _interval(sight, one, evidence, ready),
        _arrivals(key, seen),
        *await _gateway(sight, one),
        *_latencies(one, names),
        _lengths(key, names),
    ]


def _sources(one: FleetObject, evidence: Evidence, names: frozenset[str]) -> list[Finding]:
    """Which candidate name answers for each of the quantities that decisions need."""
    key, findings = one.fleet.key, []
    counts_arrivals = one.metrics.arrivals_counter is None  # by completions; else a gateway does
    for quantity in (Quantity.RUNNING, Quantity.WAITING, Quantity.COMPLETIONS):
        if metric := evidence.sources.get(quantity):
            count = evidence.series.get(quantity)
            more = "" if count is None else f", {count} pods"
            findings.append(ok(CHECK, f"{quantity} of {key}", f"{metric}{more}"))
            continue
        candidates = queries.names_of(quantity)
        exists = [name for name in candidates if name in names]
        says = (
            f"{exists[0]} has no samples for a rate yet"
            if exists
            else f"there is none of {', '.join(candidates)}"
        )
        is_needed = quantity is Quantity.COMPLETIONS and counts_arrivals
        tell = failed if is_needed and not exists else warning
        mend = "wait for a few scrapes" if exists else "check the engine's version and its metrics"
        findings.append(tell(CHECK, f"{quantity} of {key}", says, mend))
    return findings


def _coverage(key: str, seen: Observations, ready: Sequence[Pod]) -> Finding:
    says = f"{seen.reporting_replicas} of {len(ready)} ready pods show all that arrivals take"
    if seen.is_partial:
        partial = f"{says}; Prometheus says that data is missing"
        return warning("coverage", key, partial, HINTS[Gap.PARTIAL])
    if seen.frozen_replicas:
        stuck = f"{says}; metrics of {seen.frozen_replicas} stand still or are old"
        return failed("coverage", key, stuck, HINTS[Gap.FROZEN])
    if seen.reporting_replicas < len(ready):
        return warning("coverage", key, says, HINTS[Gap.INCOMPLETE])
    return ok("coverage", key, says)


async def _interval(
    sight: Sight, one: FleetObject, evidence: Evidence, ready: Sequence[Pod]
) -> Finding:
    """Compare the scrape interval with the window of rates."""
    key, scope = one.fleet.key, sight.scope_of(one)
    places = [(one.fleet.namespace, pod.name) for pod in ready[:MOST_PODS]]
    name = evidence.sources[Quantity.RUNNING]
    try:
        series, _ = await sight.prometheus.raw(queries.samples(scope, name, places))
    except PrometheusError as error:
        return warning("scrape", key, str(error), HINTS[error.failure])
    intervals = [found for entry in series if (found := scrape_interval_s(entry)) is not None]
    if not intervals:
        says = "fewer than three samples in two minutes: the interval is not known"
        return warning("scrape", key, says, "wait, or scrape every 15 s or more often")
    longest_s = max(intervals)
    says = f"every {longest_s:.3g} s; rates are over {sight.window_s:g} s"
    if longest_s > sight.period_s:
        mend = f"scrape every {sight.period_s:g} s, as often as decisions are made"
        return warning("scrape", key, f"{says}: decisions lag behind", mend)
    return ok("scrape", key, says)


def _arrivals(key: str, seen: Observations) -> Finding:
    rate = seen.arrival_rate_per_s
    if rate.value is None:
        return warning("arrivals", key, f"not known: {rate.unknown_because}", HINTS[Gap.NO_SERIES])
    return ok("arrivals", key, f"{rate.value:.3g} requests/s")


async def _gateway(sight: Sight, one: FleetObject) -> list[Finding]:
    """Look for the counter that the fleet's owner names."""
    metrics, key, scope = one.metrics, one.fleet.key, sight.scope_of(one)
    counter = metrics.arrivals_counter
    if counter is None:
        return []
    label = gateway_label(one)
    name = metrics.arrivals_name or metrics.model_name or ""
    rows = (await sight.prometheus.query(queries.gateway_rates(scope, [(counter, label)]))).rows
    there = sorted({row.labels.get(label, "") for row in rows})
    if (name in there) if name else there:
        return [ok("gateway", key, f"{counter} by {label}")]
    says = f"no rate of {counter} with {label}={name or 'any'}; there are: {there or 'none'}"
    mend = "correct spec.metrics.arrivals; until then completions and queues are counted"
    return [failed("gateway", key, says, mend)]


def _latencies(one: FleetObject, names: frozenset[str]) -> list[Finding]:
    """Which histogram measures each objective."""
    findings = []
    for objective in one.fleet.objectives:
        candidates = queries.names_of(LATENCIES[objective.metric])
        found = next((name for name in candidates if name in names), None)
        subject = f"{objective.metric} p{objective.percentile} of {one.fleet.key}"
        if found is not None:
            findings.append(ok("objective", subject, found.removesuffix("_count")))
            continue
        says = f"not measured, the model alone answers: none of {', '.join(candidates)}"
        mend = "check the engine's version and its metrics"
        findings.append(warning("objective", subject, says, mend))
    return findings


def _lengths(key: str, names: frozenset[str]) -> Finding:
    found = []
    for histogram, total in (
        (Quantity.PROMPT_TOKENS, Quantity.PROMPT_TOKENS_TOTAL),
        (Quantity.OUTPUT_TOKENS, Quantity.OUTPUT_TOKENS_TOTAL),
    ):
        candidates = (*queries.names_of(histogram), *queries.names_of(total))
        name = next((name for name in candidates if name in names), None)
        if name is None:
            says = f"{histogram} are not known: none of {', '.join(candidates)}"
            return warning("lengths", key, says, "check the engine's version and its metrics")
        found.append(name.removesuffix("_count"))
    return ok("lengths", key, ", ".join(found))
