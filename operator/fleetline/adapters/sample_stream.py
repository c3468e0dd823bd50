"""
Samples of an instant vector, handed on in batches while the answer is still coming.

An answer for 20,000 pods is 10 MB of text and ten times as much as Python objects; a batch of it is
a thousandth. Only the compact form that Prometheus writes is cut; any other is read as a whole.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

BATCH_BYTES: Final = 2**18
CUT: Final = b']},{"metric":'
"""Between two samples: inside a JSON string a quote would be escaped, so it is nowhere else."""

OPENING: Final = b'"result":['
LARGEST: Final = 1e15
"""Rates, counts and seconds beyond this are nonsense."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of an instant vector: finite, or absent."""

    labels: Mapping[str, str]
    value: float


Take = Callable[[Sequence[Row]], None]
"""Called with some rows, in the thread that reads the answer."""


class Sample(msgspec.Struct, gc=False):
    """One sample as it is written."""

    metric: dict[str, str]
    value: tuple[float, str]


SAMPLES: Final = msgspec.json.Decoder(list[Sample])


class SampleStream:
    """Collects the pieces of an answer; cuts samples off it as soon as there are enough."""

    def __init__(self, take: Take | None) -> None:
        """Hand rows to `take`; without it the answer is kept whole."""
        self._take = take
        self._buffer = bytearray()
        self._head = b""

    def add(self, piece: bytes) -> None:
        """Take the next piece of the answer."""
        self._buffer += piece
        if self._take is None or len(self._buffer) < BATCH_BYTES:
            return
        start = 0
        if not self._head:
            opening = self._buffer.find(OPENING, 0, BATCH_BYTES)
            if opening < 0:
                return
            start = opening + len(OPENING)
        cut = self._buffer.rfind(CUT, start)
        if cut < 0:
            return
        rows = _rows(b"[" + self._buffer[start : cut + 2] + b"]")
        if rows is None:
            self._take = None  # not as we know it: read as a whole, strictly
            return
        self._head = self._head or bytes(self._buffer[:start])
        del self._buffer[: cut + 3]
        self._take(rows)

    def rest(self) -> bytes:
        """Return the answer without the samples that were handed on."""
        return self._head + bytes(self._buffer)


def _rows(content: bytes | bytearray) -> list[Row] | None:
    try:
        samples = SAMPLES.decode(content)
    except msgspec.MsgspecError:
        return None
    rows = []
    for sample in samples:
        value = _number(sample.value[1])
        if value is not None:
            rows.append(Row(sample.metric, value))
    return rows


def read_row(entry: Any) -> Row | None:
    """Read one sample strictly: a finite number up to 1e15; None for anything else."""
    try:
        labels, (_, told) = entry["metric"], entry["value"]
    except (KeyError, TypeError, ValueError):
        return None
    value = _number(told)
    if not isinstance(labels, dict) or value is None:
        return None
    return Row(labels, value)


def _number(told: Any) -> float | None:
    try:
        value = float(told) if isinstance(told, str) else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= LARGEST else None
