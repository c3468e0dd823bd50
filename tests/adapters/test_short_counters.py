"""Counters that cover a part of the window: away, new, or seldom scraped."""

import pytest

from fleetline.adapters.pod_rows import PodRows
from fleetline.adapters.short_counters import ShortCounters

WINDOW_S = 60.0


def short_rows() -> PodRows:
    rows = PodRows(None)
    rows.add(("default", "a"), "completions/x/short", ("default", "m"), 9000.0)
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
