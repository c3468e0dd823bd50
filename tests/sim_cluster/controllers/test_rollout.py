"""The arithmetic of rolling updates.

Laws, one test each: a rollout ends with only the newest set; it never has more pods than surge
allows, nor fewer available ones than promised; scaling in between keeps the total and the shares.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_cluster.controllers.rollout import Bounds, Size, grow_new, resolve, shrink_old, spread


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(10, "25%", "25%", (3, 2), id="surge is rounded up, unavailable down"),
        pytest.param(1, "25%", "25%", (1, 0), id="one replica"),
        pytest.param(3, 0, "10%", (0, 1), id="both would be zero"),
        pytest.param(4, 2, 1, (2, 1), id="absolute numbers"),
        pytest.param(2, 0, 5, (0, 2), id="never more than there are"),
    ],
)
def test_percentages_become_pods(replicas, surge, unavailable, expected):
    bounds = resolve(replicas, surge=surge, unavailable=unavailable)

    assert (bounds.max_surge, bounds.max_unavailable) == expected


BOUNDS = st.builds(
    resolve,
    st.integers(1, 50),
    surge=st.one_of(st.integers(0, 10), st.sampled_from(["0%", "10%", "25%", "100%"])),
    unavailable=st.one_of(st.integers(0, 10), st.sampled_from(["0%", "10%", "25%", "100%"])),
)


def rollout(bounds, old_replicas):
    """Step until nothing changes, every pod becoming available at once; yield each state."""
    new = Size(name="new", replicas=0, created="2")
    old = Size(name="old", replicas=old_replicas, available=old_replicas, created="1")
    for _ in range(500):
        before = (new.replicas, old.replicas)
        count = grow_new(new, [old], bounds)
        new = Size(name="new", replicas=count, available=new.available, created="2")
        yield new, old
        count = shrink_old(new, [old], bounds)["old"]
        old = Size(name="old", replicas=count, available=count, created="1")
        yield new, old
        new = Size(name="new", replicas=new.replicas, available=new.replicas, created="2")
        if before == (new.replicas, old.replicas):
            return


@given(BOUNDS)
def test_a_rollout_ends_with_the_newest_set_alone(bounds):
    *_, (new, old) = rollout(bounds, bounds.replicas)

    assert (new.replicas, old.replicas) == (bounds.replicas, 0)


@given(BOUNDS)
def test_a_rollout_never_exceeds_its_surge(bounds):
    totals = [new.replicas + old.replicas for new, old in rollout(bounds, bounds.replicas)]

    assert max(totals) <= bounds.maximum


@given(BOUNDS)
def test_a_rollout_never_falls_below_what_must_be_available(bounds):
    available = [new.available + old.available for new, old in rollout(bounds, bounds.replicas)]

    assert min(available) >= bounds.min_available


def test_unavailable_old_pods_go_first():
    bounds = Bounds(replicas=4, max_surge=1, max_unavailable=1)
    new = Size(name="new", replicas=1, available=0, created="3")
    broken = Size(name="broken", replicas=2, available=0, created="2")
    good = Size(name="good", replicas=2, available=2, created="1")

    # 5 pods, 3 must be available, 1 new one is not yet: one may go, and it is a broken one.
    assert shrink_old(new, [broken, good], bounds) == {"broken": 1, "good": 2}


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 60))
def test_scaling_in_the_middle_reaches_the_new_total(first, second, replicas):
    sets = [
        Size(name="a", replicas=first, created="1", planned_maximum=first + second),
        Size(name="b", replicas=second, created="2", planned_maximum=first + second),
    ]
    bounds = Bounds(replicas=replicas, max_surge=0, max_unavailable=1)

    sizes = spread(sets, bounds)

    assert sum(sizes.values()) == replicas


def test_scaling_in_the_middle_keeps_the_shares():
    sets = [
        Size(name="old", replicas=8, created="1", planned_maximum=10),
        Size(name="new", replicas=2, created="2", planned_maximum=10),
    ]

    assert spread(sets, Bounds(replicas=20, max_surge=0, max_unavailable=1)) == {
        "old": 16,
        "new": 4,
    }
