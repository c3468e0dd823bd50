"""The definitions under test, read once, and ways to walk and to break them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "crds"
DEFINITIONS = ("servingfleets", "acceleratorprofiles")
EXAMPLES = sorted((CRDS / "examples").glob("*.yaml"))

Json = dict[str, Any]


def definition(plural: str) -> Json:
    loaded: Json = yaml.safe_load((CRDS / f"{plural}.yaml").read_text("utf-8"))
    return loaded


def schema(plural: str) -> Json:
    version: Json = definition(plural)["spec"]["versions"][0]
    root: Json = version["schema"]["openAPIV3Schema"]
    return root


def nodes(node: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema below a schema, with its path."""
    yield path, node
    for name, field in node.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


def example(name: str) -> list[Json]:
    text = (CRDS / "examples" / f"{name}.yaml").read_text("utf-8")
    return [document for document in yaml.safe_load_all(text) if document]


def changed(document, path, value):
    """Return a copy whose spec has `value` at `path`; None takes the field away."""
    copied = json.loads(json.dumps(document))
    *parents, last = path.replace("[", ".[").split(".")
    place = copied["spec"]
    for step in parents:
        place = place[int(step[1:-1])] if step.startswith("[") else place.setdefault(step, {})
    if value is None:
        place.pop(last)
    else:
        place[last] = value
    return copied


def drop_unset(fields):
    return {name: value for name, value in fields.items() if value is not None}
