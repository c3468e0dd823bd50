"""What is imported is declared where it is needed, and what is declared is imported."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OWN = {"fleetline", "sim_cluster", "tests", "tiny_engine"}
DISTRIBUTIONS = packages_distributions()
LAZY = {"plotly", "ray"}
"""Imported by name at the moment when they are needed."""

TOOLS = {
    *("pytest-asyncio", "pytest-xdist", "pytest-timeout", "mypy", "ruff", "hatchling", "editables"),
    *("import-linter", "types-pyyaml", "types-requests"),
}
"""Run, not imported."""


def declared(*extras: str) -> set[str]:
    """Names of the requirements of the package, or of some extras."""
    optional = PROJECT["optional-dependencies"]
    listed = [one for extra in extras for one in optional[extra]] or PROJECT["dependencies"]
    names = {re.split(r"[^A-Za-z0-9-]", one)[0].lower() for one in listed}
    return names - {"fleetline"}


def modules(folder: str) -> Iterator[str]:
    """Top-level modules that the files of a folder import."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield (node.module or "").partition(".")[0]


def imported(folder: str) -> set[str]:
    """Names of the distributions that a folder imports."""
    foreign = set(modules(folder)) - OWN - set(sys.stdlib_module_names)
    return {DISTRIBUTIONS.get(name, [name])[0].lower().replace("_", "-") for name in foreign} - {
        "ray"
    }


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("operator/fleetline", ("plots",)),
        ("sim_cluster", ("sim",)),
        ("tests", ("sim", "plots", "dev")),
    ],
)
def test_what_is_imported_is_declared(folder: str, extras: tuple[str, ...]) -> None:
    assert imported(folder) <= declared() | declared(*extras)


def test_what_is_declared_is_imported() -> None:
    assert declared() <= imported("operator/fleetline")
    assert declared("sim") <= imported("sim_cluster")
    assert declared("plots") - LAZY <= imported("operator/fleetline")
    assert declared("dev") - TOOLS <= imported("tests")
