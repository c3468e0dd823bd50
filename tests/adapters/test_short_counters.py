"""Counters that cover a part of the window: away, new, or seldom scraped."""

import pytest

from fleetline.adapters.pod_rows import PodRows
from fleetline.adapters.short_counters import ShortCounters

WINDOW_S = 60.0
PLACE = ("default", "a")


def short_rows() -> PodRows:
    rows = PodRows(None)
    rows.add(PLACE, "completions/x/", ("default", "m"), 9000.0)
    return rows


def among(counters: ShortCounters, count: float, rate_per_s: float) -> frozenset[str]:
    return counters.among("default", {"a": count}, {"a": rate_per_s}, window_s=WINDOW_S)


@pytest.mark.parametrize(
    ("count", "rate_per_s", "is_doubtful"),
    [
        pytest.param(9000.0, 5.0, True, id="back: the count is of hours"),
        pytest.param(9000.0, 0.0, True, id="gone"),
        pytest.param(300.0, 5.0, False, id="new: all of it within the window"),
        pytest.param(1.0, 0.0, False, id="new: the first request ended"),
    ],
)
def test_a_counter_is_doubtful_unless_it_is_new(
    count: float,
    rate_per_s: float,
    is_doubtful: bool,  # noqa: FBT001 - a case
) -> None:
    counters = ShortCounters()
    counters.note(short_rows(), window_s=WINDOW_S, now_s=1000.0)

    assert among(counters, count, rate_per_s) == (frozenset("a") if is_doubtful else frozenset())


def test_what_stays_short_is_scraped_seldom() -> None:
    counters = ShortCounters()
    for now_s in range(1000, 1200, 15):
        counters.note(short_rows(), window_s=WINDOW_S, now_s=now_s)

    assert among(counters, 9000.0, 5.0) == frozenset()


def test_what_was_whole_between_is_doubtful_again() -> None:
    counters = ShortCounters()
    counters.note(short_rows(), window_s=WINDOW_S, now_s=1000.0)
    counters.note(None, window_s=WINDOW_S, now_s=1100.0)
    counters.note(short_rows(), window_s=WINDOW_S, now_s=1200.0)

    assert among(counters, 9000.0, 5.0) == frozenset("a")


def completed(rate_per_s: float) -> PodRows:
    rows = PodRows(None)
    rows.add(PLACE, "completions/x/", ("default", "m"), rate_per_s)
    return rows


@pytest.mark.parametrize(
    ("before_per_s", "now_per_s", "is_suspect"),
    [
        pytest.param(10.0, 10.0, False, id="steady"),
        pytest.param(10.0, 7.5, False, id="a lost scrape"),
        pytest.param(10.0, 5.0, True, id="the second"),
        pytest.param(0.0, 2.5, True, id="up from nothing"),
        pytest.param(10.0, 30.0, False, id="more load"),
        pytest.param(0.05, 0.02, False, id="too few to tell"),
    ],
)
def test_samples_are_counted_where_completions_fell_or_came_back(
    before_per_s: float,
    now_per_s: float,
    is_suspect: bool,  # noqa: FBT001 - a case
) -> None:
    counters = ShortCounters()
    counters.suspects(completed(before_per_s), {"fleet": [PLACE]}, window_s=WINDOW_S)
    counters.note(None, window_s=WINDOW_S, now_s=1000.0)

    found = counters.suspects(completed(now_per_s), {"fleet": [PLACE]}, window_s=WINDOW_S)

    assert found == (frozenset([PLACE]) if is_suspect else frozenset())


def test_what_is_short_is_asked_about_until_it_is_whole() -> None:
    counters = ShortCounters()
    counters.suspects(completed(5.0), {"fleet": [PLACE]}, window_s=WINDOW_S)
    counters.note(short_rows(), window_s=WINDOW_S, now_s=1000.0)
    still = counters.suspects(completed(7.5), {"fleet": [PLACE]}, window_s=WINDOW_S)
    counters.note(None, window_s=WINDOW_S, now_s=1015.0)
    whole = counters.suspects(completed(10.0), {"fleet": [PLACE]}, window_s=WINDOW_S)

    assert still == frozenset([PLACE])
    assert whole == frozenset()


def test_a_fall_by_many_small_steps_is_noticed() -> None:
    counters, found = ShortCounters(), []
    for rate_per_s in (10.0, 9.0, 8.0, 7.0):
        found.append(
            counters.suspects(completed(rate_per_s), {"fleet": [PLACE]}, window_s=WINDOW_S)
        )
        counters.note(None, window_s=WINDOW_S, now_s=1000.0)

    assert [bool(one) for one in found] == [True, False, False, True]
