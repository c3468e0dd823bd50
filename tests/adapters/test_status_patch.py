"""The patch of a status, and numbers as a status writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters.decimals import decimal
from fleetline.adapters.settling import merge_patch

JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


def applied(old: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = applied(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


@given(OBJECTS, OBJECTS)
def test_the_patch_turns_the_old_into_the_new(
    old: dict[str, object], new: dict[str, object]
) -> None:
    assert applied(old, merge_patch(old, new)) == new


@given(OBJECTS)
def test_equal_statuses_need_no_patch(status: dict[str, object]) -> None:
    assert merge_patch(status, status) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12.345, "12.3"),
        (12345.6, "12346"),
        (0.00123456, "0.00123"),
        (float("inf"), None),
        (None, None),
    ],
)
def test_numbers_are_plain_decimals(value: float | None, text: str | None) -> None:
    assert decimal(value) == text
