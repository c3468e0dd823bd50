"""
Tables: how `kubectl get` shows objects.

Built-in kinds have columns of their own (`builtin/columns.py`), custom ones those of their CRD,
all others a name and an age.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from sim_cluster.api.builtin.ages import since
from sim_cluster.api.builtin.columns import COLUMNS, Column, age_of
from sim_cluster.api.errors import Json
from sim_cluster.api.json_path import values_at
from sim_cluster.api.resources import Resource
from sim_cluster.api.storage import Record

_NAME: Json = {"name": "Name", "type": "string", "format": "name", "priority": 0}
_PLAIN = (Column("Created At", lambda obj: obj["metadata"].get("creationTimestamp", "<unknown>")),)


def wants_table(accept: str) -> bool:
    """Whether a client asks for a table first."""
    return "as=Table" in accept.partition(",")[0]


def _definition(column: Column) -> Json:
    return {"name": column.name, "type": column.kind, "format": "", "priority": column.priority}


def definitions(resource: Resource) -> list[Json]:
    """The columns of a resource."""
    if resource.custom is None:
        columns: Sequence[Column] = COLUMNS.get((resource.group, resource.plural), _PLAIN)
        return [_NAME, *(_described(_definition(column)) for column in columns)]
    raw = resource.custom.get("additionalPrinterColumns")
    if not raw:
        return [_NAME, {"name": "Age", "type": "date", "format": "", "priority": 0}]
    return [
        _NAME,
        *(
            {
                "name": column["name"],
                "type": column["type"],
                "format": column.get("format", ""),
                "description": column.get("description", ""),
                "priority": column.get("priority", 0),
            }
            for column in raw
        ),
    ]


def _described(definition: Json) -> Json:
    return {**definition, "description": ""}


def cells(resource: Resource, obj: Json) -> list[Any]:
    """The cells of one object."""
    name = obj["metadata"]["name"]
    if resource.custom is None:
        columns = COLUMNS.get((resource.group, resource.plural), _PLAIN)
        return [name, *(column.value(obj) for column in columns)]
    raw = resource.custom.get("additionalPrinterColumns")
    if not raw:
        return [name, age_of(obj)]
    return [name, *(_custom_cell(column, obj) for column in raw)]


def _custom_cell(column: Json, obj: Json) -> Any:
    found = values_at(obj, column["jsonPath"])
    if not found or found[0] is None:
        return None
    value = found[0]
    is_truth = isinstance(value, bool)
    is_number = isinstance(value, (int, float)) and not is_truth
    match column["type"]:
        case "integer":
            cell: Any = int(value) if is_number else None
        case "number":
            cell = value if is_number else None
        case "boolean":
            cell = value if is_truth else None
        case "date":
            cell = since(str(value))
        case _:
            cell = ",".join(_text(item) for item in found)
    return cell


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode()


def _partial(obj: Json) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def row(resource: Resource, obj: Json, include: str) -> Json:
    """One row; `include` says how much of the object comes with it."""
    attached: Json | None = _partial(obj)
    if include == "Object":
        attached = obj
    elif include == "None":
        attached = None
    return {"cells": cells(resource, obj), "object": attached}


def table(
    resource: Resource,
    objects: Sequence[Json],
    *,
    metadata: Mapping[str, Any],
    include: str = "Metadata",
    has_columns: bool = True,
) -> Json:
    """A table of objects."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": definitions(resource) if has_columns else [],
        "rows": [row(resource, obj, include) for obj in objects],
    }


def watch_rendering(resource: Resource, include: str) -> "TableRendering":
    """How a watch writes records as tables."""
    return TableRendering(resource, include)


class TableRendering:
    """Writes each record as a table of one row; only the first carries the columns."""

    def __init__(self, resource: Resource, include: str) -> None:
        self._resource = resource
        self._include = include
        self._is_first = True

    def __call__(self, record: Record) -> bytes:
        """The line of one record."""
        obj = record.parsed()
        metadata = {"resourceVersion": str(record.revision)}
        made = table(
            self._resource,
            [obj],
            metadata=metadata,
            include=self._include,
            has_columns=self._is_first,
        )
        self._is_first = False
        return orjson.dumps(made)
