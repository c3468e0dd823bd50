"""The definitions under test, read once, and ways to walk and to break them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def broken(document: Json, break_it: Callable[[Json], object]) -> Json:
    """Return a copy with a changed spec."""
    changed = copy.deepcopy(document)
    break_it(changed["spec"])
    return changed
