"""Rows of pods in columns: what went in comes out, whatever the order, models and pods."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters.pod_rows import PodRows

PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))
ROWS = st.lists(
    st.tuples(
        PLACES,
        st.sampled_from(["running/r/", "waiting/w/"]),
        st.sampled_from([("a", "llama"), ("a", "qwen")]),
        st.floats(-10, 10),
    )
)


@given(ROWS)
def test_every_row_is_kept(rows: list) -> None:
    kept, expected = PodRows(None), defaultdict(list)
    for place, tag, model, value in rows:
        kept.add(place, tag, model, value)
        expected[place].append((tag, model, value))

    found = {place: sorted(entries) for place, entries in kept.items()}

    assert found == {place: sorted(entries) for place, entries in expected.items()}
    assert set(kept) == set(expected)


@given(ROWS)
def test_only_rows_of_known_places_are_kept(rows: list) -> None:
    kept = PodRows({("a", "x"): 0, ("b", "y"): 1})
    for row in rows:
        kept.add(*row)

    assert set(kept) == {row[0] for row in rows} & {("a", "x"), ("b", "y")}
    assert kept.get(("a", "z")) == []
