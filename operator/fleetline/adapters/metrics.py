"""Our own metrics, declared in one table; series of a deleted fleet are removed."""

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fleetline.control.evidence import Gap
from fleetline.control.ports import Observations
from fleetline.control.turn import Turn

FLEET: Final = ("namespace", "fleet")
TURN_BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

GAUGES: Final = {
    "desired_replicas": "Replicas after every rule of the policy.",
    "current_replicas": "Replicas that the scale subresource of the target asks for.",
    "ready_replicas": "Replicas that serve.",
    "arrival_rate_requests_per_second": "Requests offered to the fleet.",
    "expected_rate_requests_per_second": "Arrival rate to be ready for.",
    "replica_capacity_requests_per_second": "Ceiling of one replica under its objectives.",
    "utilization_ratio": "Arrival rate over the ceilings of the ready replicas, 0 to 1 and above.",
    "loop_gain_ratio": "Gain of the feedback from load to residence time at the ceiling.",
    "observation_age_seconds": "Time since the newest sample that was seen.",
    "startup_time_seconds": "Start-up time that decisions look ahead, the ninth of ten starts.",
    "margin_ratio": "Margin learned from how often the objectives held.",
}


class FleetGauges(Collector):
    """Gauges of all fleets, kept as rows: the library takes a megabyte for a hundred fleets."""

    def __init__(self) -> None:
        """Begin without fleets."""
        self._rows: dict[tuple[str, str], array[float]] = {}

    def set(self, key: tuple[str, str], values: Mapping[str, float | None]) -> None:
        """Show the values of a fleet by the names of `GAUGES`; the unknown as not a number."""
        known = (values[name] for name in GAUGES)
        self._rows[key] = array("d", (math.nan if one is None else one for one in known))

    def forget(self, key: tuple[str, str]) -> None:
        """Remove the series of a fleet that is gone."""
        self._rows.pop(key, None)

    def clear(self) -> None:
        """Remove all series."""
        self._rows.clear()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families without series."""
        for name, text in GAUGES.items():
            yield GaugeMetricFamily(f"fleetline_{name}", text, labels=FLEET)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one family after the other."""
        for place, family in enumerate(self.describe()):
            for key, row in self._rows.items():
                family.add_metric(key, row[place])
            yield family


class OwnMetrics:
    """The registry behind `/metrics`."""

    def __init__(self) -> None:
        """Declare everything."""
        self.registry = CollectorRegistry()
        self._fleets = FleetGauges()
        self.registry.register(self._fleets)
        self._turns = Counter(
            "fleetline_turns",
            "Turns taken, by the rule that set the count.",
            (*FLEET, "reason"),
            registry=self.registry,
        )
        self._unknown = Counter(
            "fleetline_unknown_turns",
            "Turns in which demand was not known.",
            FLEET,
            registry=self.registry,
        )
        self._incomplete = Counter(
            "fleetline_incomplete_turns",
            "Turns in which not all of the fleet was seen, by what was missing.",
            (*FLEET, "gap"),
            registry=self.registry,
        )
        self.turn_duration = Histogram(
            "fleetline_turn_duration_seconds",
            "Time of one fleet's turn.",
            buckets=TURN_BUCKETS_S,
            registry=self.registry,
        )
        self.round_duration = Histogram(
            "fleetline_round_duration_seconds",
            "Time of one round over all fleets: reading the cluster, and every turn.",
            buckets=TURN_BUCKETS_S,
            registry=self.registry,
        )
        self.observation_duration = Histogram(
            "fleetline_observation_duration_seconds",
            "Time in which Prometheus answered all questions of a round.",
            buckets=TURN_BUCKETS_S,
            registry=self.registry,
        )
        self.failures = Counter(
            "fleetline_failures",
            "What could not be done, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.queries = Gauge(
            "fleetline_prometheus_queries_per_round",
            "Queries sent to Prometheus in the last round.",
            registry=self.registry,
        )
        self.skew = Gauge(
            "fleetline_prometheus_clock_skew_seconds",
            "Clock of Prometheus less our own.",
            registry=self.registry,
        )
        self.leader = Gauge(
            "fleetline_leader", "1 if this process may act.", registry=self.registry
        )
        self._reasons: dict[tuple[str, str], set[str]] = {}

    def note(self, turn: Turn) -> None:
        """Show one turn."""
        fleet, situation = turn.fleet, turn.assessment.situation
        key = (fleet.namespace, fleet.name)
        capacity, seen = turn.assessment.capacity, turn.seen
        ceiling = None if capacity is None else capacity.ceiling_at(max(1, turn.target.replicas))
        observed = seen if isinstance(seen, Observations) else None
        rate = None if observed is None else observed.arrival_rate_per_s.value
        total = None if ceiling is None else ceiling.rate_per_s * situation.health.ready
        demand = situation.demand
        values: dict[str, float | None] = {
            "desired_replicas": turn.decision.desired_replicas,
            "current_replicas": turn.target.replicas,
            "ready_replicas": situation.health.ready,
            "arrival_rate_requests_per_second": rate,
            "expected_rate_requests_per_second": None
            if demand is None
            else demand.expected_rate_per_s * demand.margin_factor,
            "replica_capacity_requests_per_second": None if ceiling is None else ceiling.rate_per_s,
            "utilization_ratio": rate / total if rate is not None and total else None,
            "loop_gain_ratio": None if ceiling is None else ceiling.loop_gain,
            "observation_age_seconds": None if observed is None else observed.sample_age_s.value,
            "startup_time_seconds": turn.memory.startup.likely_s,
            "margin_ratio": turn.memory.margin_factor,
        }
        self._fleets.set(key, values)
        reason = str(turn.decision.binding.reason)
        if reason == "Demand" and capacity is not None and capacity.unattainable:
            reason = "ObjectivesUnattainable"
        self.count(key, reason)
        if situation.demand is None:
            self._unknown.labels(*key).inc()
        elif (gap := turn.assessment.gap) is not None:
            self._incomplete.labels(*key, str(gap)).inc()

    def count(self, key: tuple[str, str], reason: str) -> None:
        """Count a turn by its reason."""
        self._reasons.setdefault(key, set()).add(reason)
        self._turns.labels(*key, reason).inc()

    def forget(self, key: tuple[str, str]) -> None:
        """Remove the series of a fleet that is gone."""
        self._fleets.forget(key)
        _remove(self._unknown, key)
        for gap in Gap:
            _remove(self._incomplete, (*key, str(gap)))
        for reason in self._reasons.pop(key, set()):
            _remove(self._turns, (*key, reason))

    def blank(self, key: tuple[str, str]) -> None:
        """Show that nothing is known of a fleet now."""
        self._fleets.set(key, dict.fromkeys(GAUGES))

    def stand_by(self) -> None:
        """Show no fleets: another process decides on them."""
        self._fleets.clear()

    def exposition(self) -> bytes:
        """Print everything in Prometheus' text format."""
        return generate_latest(self.registry)


def _remove(metric: Counter | Gauge, labels: tuple[str, ...]) -> None:
    try:
        metric.remove(*labels)
    except KeyError:
        return  # it never had a value
