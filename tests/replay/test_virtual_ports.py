"""What our policy sees in a replay: as old, coarse and incomplete as Prometheus is."""

import math

import numpy as np
import pytest

from fleetline.replay.ours import finish
from fleetline.replay.scrape import Bounds, Scraper, observe
from fleetline.replay.virtual_ports import VirtualCluster, VirtualMetrics, histogram_quantile
from tests.control.fakes import a_fleet
from tests.replay.scenes import OBJECTIVES, replica, scenario


def scraped(until_s: float, every_s: float = 15.0):
    scene = scenario((8.0,), stretch_s=600.0)
    fleet, scraper = scene.fleet(), Scraper()
    for at_s in np.arange(every_s, until_s + 1e-9, every_s):
        fleet.advance(float(at_s))
        scraper.scrape(fleet.snapshot())
    return scene, fleet, scraper


def test_rates_are_unknown_until_two_scrapes() -> None:
    _, _, scraper = scraped(15.0)

    assert scraper.arrival_rate_per_s(15.0) is None


def test_rates_come_from_counters_between_scrapes() -> None:
    scene, _, scraper = scraped(300.0)
    rate = scraper.arrival_rate_per_s(300.0)
    times = scene.trace.arrivals.t_s

    assert rate == pytest.approx(((times > 240.0) & (times <= 300.0)).sum() / 60.0)


def test_mean_lengths_are_those_of_the_trace() -> None:
    _, _, scraper = scraped(500.0)
    prompt, output = scraper.mean_lengths(500.0)

    assert prompt == pytest.approx(1000.0)
    # tokens of requests under way at the ends of the window
    assert output == pytest.approx(200.0, rel=0.05)


def test_a_replica_without_a_scrape_has_no_sample() -> None:
    _, fleet, scraper = scraped(300.0)
    fleet.scale(4)
    fleet.advance(365.0)

    seen = observe(
        scraper,
        now_s=365.0,
        asked=4,
        ready=fleet.ready_replicas,
        bounds=Bounds(min_replicas=1, max_replicas=9),
        has_peaks=True,
    )

    assert seen.ready_replicas == 4
    assert len(seen.samples) == 2


def test_observations_tell_how_old_they_are() -> None:
    scene, _, scraper = scraped(300.0)
    metrics = VirtualMetrics(scraper, scene.trace.arrivals, now_s=310.0)

    seen = metrics.read(OBJECTIVES)

    assert seen.sample_age_s.value == pytest.approx(10.0)
    assert seen.reporting_replicas == 2
    assert seen.latency_percentiles_s[str(OBJECTIVES[0])].is_known


def test_before_the_first_scrape_everything_is_unknown() -> None:
    scene = scenario(stretch_s=60.0)

    seen = VirtualMetrics(Scraper(), scene.trace.arrivals).read(OBJECTIVES)

    assert not seen.arrival_rate_per_s.is_known
    assert not seen.running_requests.is_known


def test_pods_tell_their_start() -> None:
    _, fleet, _ = scraped(300.0)
    fleet.scale(3)
    fleet.advance(365.0)
    target = finish(VirtualCluster(fleet, replica(), 60.0).read_target(a_fleet()))

    starts = [(pod.ready_since_s or math.nan) - pod.created_s for pod in target.pods]

    assert target.replicas == 3
    assert starts == pytest.approx([60.0, 60.0, 60.0])


@pytest.mark.parametrize(
    ("counts", "quantile", "expected"),
    [
        pytest.param([10, 0, 0], 0.5, 0.5, id="half of the first bucket"),
        pytest.param([5, 5, 0], 0.75, 1.5, id="half of the second"),
        pytest.param([0, 0, 3], 0.5, 2.0, id="beyond the last bound"),
        pytest.param([0, 0, 0], 0.5, None, id="nothing"),
    ],
)
def test_a_quantile_is_interpolated_as_prometheus_does(counts, quantile, expected) -> None:
    bounds = np.array([1.0, 2.0])

    assert histogram_quantile(bounds, np.array(counts, float), quantile) == expected
