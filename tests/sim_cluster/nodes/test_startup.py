"""Start-up times: what can be written, and what is drawn."""

import random
import statistics

import pytest

from sim_cluster.nodes.startup import parse_duration_s, parse_startup_time


@pytest.mark.parametrize(
    ("text", "time_s"),
    [("8s", 8.0), ("500ms", 0.5), ("1m30s", 90.0), ("0s", 0.0), ("1.5m", 90.0)],
)
def test_a_duration_is_read_as_people_write_it(text: str, time_s: float) -> None:
    assert parse_duration_s(text) == time_s


@pytest.mark.parametrize("text", ["8", "", "s", "-3s", "8 parsecs", "uniform(1s)", "normal(1s,2)"])
def test_what_is_no_distribution_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_startup_time(text)


def test_a_lognormal_start_has_the_median_and_the_spread_that_were_asked_for() -> None:
    chance = random.Random(1)  # noqa: S311
    startup = parse_startup_time("lognormal(60s, 0.4)")

    drawn_s = sorted(startup.draw_s(chance) for _ in range(4000))

    assert statistics.median(drawn_s) == pytest.approx(60, rel=0.03)
    # one sigma above the median: 60 s x exp(0.4) = 89.5 s
    assert drawn_s[int(0.8413 * 4000)] == pytest.approx(89.5, rel=0.04)


def test_a_uniform_start_stays_within_its_bounds() -> None:
    chance = random.Random(1)  # noqa: S311
    startup = parse_startup_time("uniform(20s,40s)")

    drawn_s = [startup.draw_s(chance) for _ in range(1000)]

    assert 20 <= min(drawn_s) < 21
    assert 39 < max(drawn_s) <= 40


def test_the_same_seed_draws_the_same_times() -> None:
    startup = parse_startup_time("lognormal(60s,0.4)")

    first, second = random.Random(7), random.Random(7)  # noqa: S311

    assert [startup.draw_s(first) for _ in range(9)] == [startup.draw_s(second) for _ in range(9)]
