"""Rows about pods, as columns of numbers: of 20,000 pods an object for each would take 20 MB."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

GAUGES: Final = "gauge/"
"""Prefix of rows that tell what is now."""

Place = tuple[str, str]
"""Namespace and pod."""

Model = tuple[str, ...]
"""Namespace, and the values of the model labels."""

Entry = tuple[str, Model, float]
"""Tag, model and value."""


class PodRows:
    """Rows of one prefix: for each tag one number a pod; what does not fit into that, apart."""

    def __init__(self, places: Mapping[Place, int] | None) -> None:
        """Take rows of `places`, which are numbered; or of any, if there are none."""
        self._given = places
        self._places: dict[Place, int] = {}
        self._columns: dict[str, array[float]] = {}
        self._models: list[Model | None] = []
        self._kept: dict[Model, Model] = {}
        self._more: dict[int, list[Entry]] = {}
        """Rows of pods that serve several models, and second rows of a tag."""

    def add(self, place: Place, tag: str, model: Model, value: float) -> None:
        """Take one row."""
        number = self._number(place)
        if number is None:
            return
        if number >= len(self._models):
            self._models += [None] * (number + 1 - len(self._models))
        first = self._models[number]
        if first is None:
            first = self._models[number] = self._kept.setdefault(model, model)
        column = self._columns.get(tag)
        if column is None:
            column = self._columns[tag] = array("d")
        if number >= len(column):
            column.extend([math.nan] * (max(number + 1, len(self._models)) - len(column)))
        if model == first and math.isnan(column[number]):
            column[number] = value
        else:
            entry = tag, self._kept.setdefault(model, model), value
            self._more.setdefault(number, []).append(entry)

    def get(self, place: Place) -> list[Entry]:
        """Rows of a pod; none of an unknown one."""
        number = (self._places if self._given is None else self._given).get(place)
        return [] if number is None else self._at(number)

    def total(self, places: Iterable[Place]) -> float:
        """Sum of all that some pods show."""
        numbers = self._places if self._given is None else self._given
        chosen = [number for place in places if (number := numbers.get(place)) is not None]
        columns = (
            column[number]
            for column in self._columns.values()
            for number in chosen
            if number < len(column) and not math.isnan(column[number])
        )
        more = (value for number in chosen for _, _, value in self._more.get(number, ()))
        return math.fsum(columns) + math.fsum(more)

    def __iter__(self) -> Iterator[Place]:
        """Pods that have rows."""
        return (place for place, _ in self.items())

    def items(self) -> Iterator[tuple[Place, list[Entry]]]:
        """Pods and their rows, if they have any."""
        for place, number in (self._places if self._given is None else self._given).items():
            rows = self._at(number)
            if rows:
                yield place, rows

    def _number(self, place: Place) -> int | None:
        if self._given is not None:
            return self._given.get(place)
        return self._places.setdefault(place, len(self._places))

    def _at(self, number: int) -> list[Entry]:
        model = self._models[number] if number < len(self._models) else None
        if model is None:
            return []
        rows = [
            (tag, model, value)
            for tag, column in self._columns.items()
            if number < len(column) and not math.isnan(value := column[number])
        ]
        return rows + self._more.get(number, [])
