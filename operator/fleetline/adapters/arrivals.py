"""
Requests that arrive at a fleet: a gateway's counter where its owner names one, else conservation.

No engine counts arrivals: what arrived is what completed plus what came to be inside.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fleetline.adapters.engine_metrics import Quantity
from fleetline.adapters.manifest import FleetObject
from fleetline.adapters.observations import PodView, Rows, view_pods
from fleetline.adapters.pod_rows import Place
from fleetline.adapters.scope import MODEL_LABELS
from fleetline.adapters.short_counters import ShortCounters
from fleetline.control.ports import Reading, unknown

COMPLETED, GROWTH, YOUNG, SHORT = "completed/", "growth/", "young/", "short/"
"""Prefixes of rows by pod, after the question that they answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """A fleet's pods in a turn."""

    names: Sequence[str]
    gauges: PodView
    young: frozenset[str]
    """Ready since less than a window and a half."""
    frozen: frozenset[str]
    """Whose metrics stand still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What a turn knows about arrivals."""

    rate_per_s: Reading
    whole: int
    """Pods that show all that it takes."""
    completions_name: str | None
    """Metric that counts completions; None if none does."""


class Arrivals:
    """Reads them for all fleets, and remembers which counters were ever there."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._counting: frozenset[str] = frozenset()
        """Fleets that ever showed a counter of completions."""
        self._short = ShortCounters()

    def keep(self, keys: Collection[str]) -> None:
        """Forget all fleets but these."""
        self._counting = self._counting.intersection(keys)

    def suspects(
        self, rows: Rows, pods: Mapping[str, Collection[Place]], *, window_s: float
    ) -> frozenset[Place]:
        """Pods, of fleets by their keys, whose counters may cover a part of the window only."""
        return self._short.suspects(rows.by_pod.get(COMPLETED), pods, window_s=window_s)

    def note(self, rows: Rows, *, window_s: float, now_s: float) -> None:
        """Take the answers of a turn."""
        self._short.note(rows.by_pod.get(SHORT), window_s=window_s, now_s=now_s)

    def of(self, one: FleetObject, rows: Rows, inside: Inside, *, window_s: float) -> Arrived:
        """Return offered requests per second of a fleet, after `note`."""
        views = [
            view_pods(rows, one.fleet.namespace, inside.names, prefix, one.metrics.model_name)
            for prefix in (COMPLETED, GROWTH, YOUNG, SHORT)
        ]
        completed, growth, young, short = views
        doubtful = self._short.among(
            one.fleet.namespace,
            short.values.get(Quantity.COMPLETIONS, {}),
            completed.values.get(Quantity.COMPLETIONS, {}),
            window_s=window_s,
        )
        rate_per_s, whole = conserved_arrivals(
            inside.gauges,
            (completed, growth, young),
            inside.young,
            window_s=window_s,
            doubtful=inside.frozen | (doubtful - inside.young),
            counts=one.fleet.key in self._counting,
        )
        if completed.values.get(Quantity.COMPLETIONS):
            self._counting |= {one.fleet.key}
        counted_per_s = gateway_arrivals(one, rows)
        if counted_per_s is not None and (counted_per_s > 0 or not rate_per_s.value):
            running = inside.gauges.values.get(Quantity.RUNNING, {})
            rate_per_s, whole = Reading(counted_per_s), len(running.keys() - inside.frozen)
        return Arrived(
            rate_per_s=rate_per_s,
            whole=whole,
            completions_name=completed.sources.get(Quantity.COMPLETIONS),
        )


def gateway_label(one: FleetObject) -> str:
    """Label of the gateway's counter that tells the models apart."""
    return one.metrics.arrivals_label or one.metrics.model_label or MODEL_LABELS[0]


def gateway_arrivals(one: FleetObject, rows: Rows) -> float | None:
    """Rate of the counter that the fleet's owner named; None if there is none now. [1/s]"""
    counter = one.metrics.arrivals_counter
    if counter is None:
        return None
    name = one.metrics.arrivals_name or one.metrics.model_name or ""
    tag = f"{counter}/{gateway_label(one)}"
    found = [
        value
        for (namespace, source, model), value in rows.gateway.items()
        if (namespace, source) == (one.fleet.namespace, tag) and (model == name or not name)
    ]
    return max(0.0, sum(found)) if found else None


def conserved_arrivals(
    gauges: PodView,
    rates: tuple[PodView, PodView, PodView],
    young: frozenset[str],
    *,
    window_s: float,
    doubtful: frozenset[str] = frozenset(),
    counts: bool = False,
) -> tuple[Reading, int]:
    """
    Arrivals by conservation: completions per second, plus growth of what is inside.

    A pod younger than the window has no rate yet; all that it counted and holds arrived within.
    An older pod without samples a window ago (Prometheus was away) is not counted at all, nor is
    a `doubtful` one (it stands still, or its counter was away for a part of the window), one that
    is busy but shows no completions, or one without a queue that the others show. Where completions
    were ever counted (`counts`), none of them is no zero.
    """
    completed, growth, fresh = (view.values for view in rates)
    running = gauges.values.get(Quantity.RUNNING, {})
    waiting = gauges.values.get(Quantity.WAITING, {})
    done, counted = completed.get(Quantity.COMPLETIONS, {}), fresh.get(Quantity.COMPLETIONS, {})
    grown, queued = (growth.get(one, {}) for one in (Quantity.RUNNING, Quantity.WAITING))
    if not running:
        return unknown("no series of running requests for the fleet's pods"), 0
    total, whole = 0.0, 0
    for pod, inside in running.items():
        if pod in doubtful or (waiting and pod not in waiting):
            continue
        if pod in grown:
            is_busy = inside + waiting.get(pod, 0.0) > 0
            if is_busy and pod not in young and pod not in done and (done or counted):
                continue
            total += done.get(pod, 0.0) + grown[pod] + queued.get(pod, 0.0)
        elif pod in young:
            total += (inside + waiting.get(pod, 0.0) + counted.get(pod, 0.0)) / window_s
        else:
            continue
        whole += 1
    if doubtful.issuperset(running):
        return unknown("the metrics of all pods stand still, are old, or were away until now"), 0
    if whole == 0:
        return unknown(f"no samples from {window_s:g} s ago"), 0
    if not (done or counted) and (counts or sum(running.values()) > 0):
        return unknown("no series of completed requests, although there are or were some"), 0
    return Reading(max(0.0, total)), whole
