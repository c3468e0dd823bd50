"""Prometheus is asked beside the rounds: who is woken does not wait, who is not does."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.prometheus import Failure, PrometheusError
from fleetline.adapters.settings import Settings
from fleetline.control.fleet import TargetReference
from fleetline.control.ports import Observations, Reading
from fleetline.entrypoints.observing import Observing
from tests.control.fakes import a_fleet, seen

SETTINGS = Settings(prometheus_url="http://localhost", prometheus_timeout_s=0.5)


class FakeMetrics:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.rate_per_s = 1.0
        self.error: Exception | None = None
        self.age = Reading(5.0)
        self.asked = 0

    async def observe(self, fleets) -> dict[str, Observations]:
        self.asked += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error
        answer = seen(self.rate_per_s, sample_age_s=self.age)
        return {fleet.key: answer for fleet in fleets}


def observing(metrics: FakeMetrics) -> Observing:
    return Observing(metrics, OwnMetrics(), SETTINGS)  # type: ignore[arg-type]


def rate(view: Observations | str) -> float | None:
    assert isinstance(view, Observations)
    return view.arrival_rate_per_s.value


async def test_a_woken_round_takes_what_was_seen_last() -> None:
    metrics, fleet, woken = FakeMetrics(), a_fleet(), asyncio.Event()
    one, loop = observing(metrics), asyncio.get_running_loop()
    metrics.go.set()
    await one.see([fleet])
    metrics.go.clear()
    metrics.rate_per_s = 9.0
    woken.set()

    old = await one.see([fleet], woken)
    still_old = await one.see([fleet], woken)
    woken.clear()
    metrics.go.set()
    new = await one.see([fleet], woken)

    assert rate(old.of(fleet, loop.time())) == rate(still_old.of(fleet, loop.time())) == 1.0
    assert rate(new.of(fleet, loop.time())) == 9.0
    assert metrics.asked == 2


async def test_the_first_round_waits_whoever_wakes_it() -> None:
    metrics, fleet, woken = FakeMetrics(), a_fleet(), asyncio.Event()
    one = observing(metrics)
    woken.set()
    asyncio.get_running_loop().call_later(0.1, metrics.go.set)

    first = await one.see([fleet], woken)

    assert rate(first.of(fleet, 0.0)) == 1.0


async def test_samples_are_as_old_as_they_are_now() -> None:
    metrics, fleet = FakeMetrics(), a_fleet()
    metrics.go.set()
    view = await observing(metrics).see([fleet])

    later = view.of(fleet, view.at_s + 40.0)

    assert isinstance(later, Observations)
    assert later.sample_age_s.value == 45.0


@pytest.mark.parametrize(
    "other",
    [
        a_fleet(uid="2"),
        a_fleet(name="code"),
        replace(a_fleet(), target=TargetReference(kind="Deployment", name="code")),
    ],
)
async def test_another_fleet_or_target_was_not_observed(other) -> None:
    metrics = FakeMetrics()
    metrics.go.set()
    view = await observing(metrics).see([a_fleet()])

    assert view.of(other, view.at_s) == "not observed"


async def test_a_failure_says_why_and_the_next_reading_heals() -> None:
    metrics, fleet = FakeMetrics(), a_fleet()
    one = observing(metrics)
    metrics.go.set()
    metrics.error = PrometheusError(Failure.QUERY_ERROR, "no")
    failed = await one.see([fleet])
    metrics.error = None
    healed = await one.see([fleet])

    assert (failed.failure, failed.of(fleet, 0.0)) == ("QueryError", "no")
    assert rate(healed.of(fleet, healed.at_s)) == 1.0


async def test_an_answer_that_never_comes_is_given_up() -> None:
    view = await observing(FakeMetrics()).see([a_fleet()])

    assert view.failure == "PrometheusUnreachable"


async def test_a_reading_under_way_is_stopped() -> None:
    metrics = FakeMetrics()
    one = observing(metrics)
    waiting = asyncio.create_task(one.see([SimpleNamespace(key="x")]))  # type: ignore[list-item]
    await asyncio.sleep(0.05)
    await one.stop()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_one_failure_is_bridged_with_what_was_seen_last_and_not_for_long() -> None:
    metrics, fleet = FakeMetrics(), a_fleet()
    one = Observing(metrics, OwnMetrics(), replace(SETTINGS, period_s=0.2))  # type: ignore[arg-type]
    metrics.go.set()
    await one.see([fleet])
    metrics.error = PrometheusError(Failure.UNREACHABLE, "no")
    bridged = await one.see([fleet])
    await asyncio.sleep(0.5)
    failed = await one.see([fleet])

    assert (bridged.failure, failed.failure) == ("", "PrometheusUnreachable")


async def test_samples_of_unknown_age_are_at_least_as_old_as_the_answer() -> None:
    metrics, fleet = FakeMetrics(), a_fleet()
    metrics.age = Reading(None, "no time stamps")
    metrics.go.set()
    found = await observing(metrics).see([fleet])

    now, later = found.of(fleet, found.at_s), found.of(fleet, found.at_s + 40.0)

    assert isinstance(now, Observations)
    assert not now.sample_age_s.is_known
    assert isinstance(later, Observations)
    assert later.sample_age_s.value == pytest.approx(40.0)
