"""Names of metrics are asked for seldom, but at once where something is missing."""

from dataclasses import dataclass

from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.manifest import FleetObject, MetricsSpec
from fleetline.adapters.prometheus import Prometheus
from fleetline.adapters.replica_spec import ReplicaSpec
from fleetline.control.ports import Observations, Pod
from tests.control.fakes import a_fleet
from tests.entrypoints.fake_prometheus import COMPLETIONS, NAMES, FakePrometheus, Load

POD = Pod(name="chat-1", created_s=0.0, ready_since_s=1.0)


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


async def observe(metrics: EngineMetrics) -> Observations:
    return (await metrics.observe([a_fleet()]))["default/chat"]


async def test_a_counter_that_shows_itself_late_is_found_within_a_minute() -> None:
    clock, load = Clock(), Load("default", lambda: ["chat-1"], rate_per_s=2.0)
    silent = tuple(name for name in NAMES if name != COMPLETIONS)
    async with FakePrometheus(loads=[load], names=silent) as fake:
        prometheus = Prometheus(fake.url, deadline_s=5.0)
        metrics = EngineMetrics(
            prometheus, pods_of=lambda _: (POD,), period_s=15.0, scrape_interval_s=15.0, ticks=clock
        )
        metrics.look_at(
            [FleetObject(fleet=a_fleet(), replica=ReplicaSpec(), metrics=MetricsSpec())]
        )
        before = await observe(metrics)
        fake.names = NAMES
        clock.now_s = 61.0
        after = await observe(metrics)
        prometheus.close()

    assert before.running_requests.is_known
    assert not before.arrival_rate_per_s.is_known
    assert after.arrival_rate_per_s.is_known
