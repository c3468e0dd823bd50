# ruff: noqa: INP001 - a script beside the data that it reads, not a package
"""Write the table of values into charts/fleetline/README.md, from the comments of values.yaml.

python charts/reference.py          # rewrite the table
python charts/reference.py --check  # exit code 1 if it is out of date
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = Path(__file__).parent / "fleetline"
CRDS = Path(__file__).parents[1] / "crds"
README = CHART / "README.md"
BEGIN = "<!-- values: written by charts/reference.py -->\n"
END = "<!-- end of values -->\n"


class Value(NamedTuple):
    """One value of the chart."""

    path: str
    default: Any
    description: str


def values() -> Iterator[Value]:
    """Every value that has a description, in the order of the file."""
    text = (CHART / "values.yaml").read_text("utf-8")
    defaults = yaml.safe_load(text)
    parents: list[str] = []
    described: list[str] = []
    for line in text.splitlines():
        if comment := re.fullmatch(r" *# (--)? ?(.*)", line):
            described = [comment[2]] if comment[1] else described and [*described, comment[2]]
        elif key := re.match(r"( *)([A-Za-z]+):", line):
            parents = [*parents[: len(key[1]) // 2], key[2]]
            if described:
                yield Value(".".join(parents), _at(defaults, parents), " ".join(described))
            described = []
        else:
            described = []


def _at(tree: Any, path: list[str]) -> Any:
    for name in path:
        tree = tree[name]
    return tree


def table() -> str:
    """Return the table alone."""
    rows = [f"| `{v.path}` | `{json.dumps(v.default)}` | {v.description} |" for v in values()]
    return "\n".join(["| value | default | what it does |", "| --- | --- | --- |", *rows, ""])


def page() -> str:
    """Return the README with a fresh table."""
    before, rest = README.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def outdated() -> dict[Path, str]:
    """Return the files that differ from what they should be, and what they should be."""
    wanted = {README: page()}
    for definition in sorted(CRDS.glob("*.yaml")):
        wanted[CHART / "files" / "crds" / definition.name] = definition.read_text("utf-8")
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text("utf-8") != text
    }


def main(arguments: list[str]) -> int:
    """Rewrite what is out of date, or with `--check` only name it."""
    stale = outdated()
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path} must be what charts/reference.py writes; run it", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
