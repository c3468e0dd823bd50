"""Samples cut off an answer that comes in pieces are those of the whole answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters.sample_stream import Row, SampleStream, read_row

NASTY = 'x]},{"metric":{"a\\'


def answer(count: int, *, indent: int | None = None, value: str = "1.5") -> bytes:
    samples = [
        {"metric": {"pod": f"p{number}", "model": NASTY}, "value": [1.0, value]}
        for number in range(count)
    ]
    body = {
        "status": "success",
        "data": {"resultType": "vector", "result": samples},
        "warnings": ["w"],
    }
    separators = (",", ":") if indent is None else None
    return json.dumps(body, indent=indent, separators=separators).encode()


def streamed(content: bytes, piece: int) -> tuple[list[Row], dict[str, Any]]:
    rows: list[Row] = []
    stream = SampleStream(rows.extend)
    for start in range(0, len(content), piece):
        stream.add(content[start : start + piece])
    rest = json.loads(stream.rest())
    rows += [row for one in rest["data"]["result"] if (row := read_row(one)) is not None]
    return rows, rest


@given(st.integers(50, 5000))
def test_pieces_of_any_size_give_the_same_rows(piece: int) -> None:
    rows, rest = streamed(answer(60), piece)

    assert [row.labels["pod"] for row in rows] == [f"p{number}" for number in range(60)]
    assert all(row.labels["model"] == NASTY and row.value == 1.5 for row in rows)
    assert rest["warnings"] == ["w"]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetline.adapters.sample_stream.BATCH_BYTES", 400)


def test_rows_are_handed_on_while_the_answer_comes() -> None:
    rows: list[Row] = []
    stream = SampleStream(rows.extend)
    content = answer(60)

    stream.add(content[:-500])

    assert len(rows) > 40
    assert len(stream.rest()) < 2000


def test_an_answer_in_another_form_is_read_as_a_whole() -> None:
    rows, rest = streamed(answer(60, indent=1), 300)

    assert len(rows) == len(rest["data"]["result"]) == 60


def test_samples_that_are_no_numbers_are_left_out() -> None:
    rows, _ = streamed(answer(60, value="NaN"), 300)

    assert rows == []


def test_samples_of_another_kind_are_read_strictly() -> None:
    content = answer(60).replace(b'[1.0,"1.5"]', b'{"a":1}')

    assert streamed(content, 300)[0] == []
