# ruff: noqa: INP001 - a script beside the data that it reads, not a package
"""Write crds/README.md, the field reference, from the schemas beside this file.

python crds/reference.py          # rewrite README.md
python crds/reference.py --check  # exit code 1 if README.md is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
KINDS = ("servingfleets", "acceleratorprofiles")

INTRODUCTION = """\
# The API: `fleetline.dev/v1alpha1`

The definitions are [servingfleets.yaml](servingfleets.yaml) and
[acceleratorprofiles.yaml](acceleratorprofiles.yaml); [examples](examples) has a
[minimal fleet](examples/minimal.yaml), one with [every field explained](examples/chat.yaml), and
[accelerator profiles](examples/accelerator.yaml).

    kubectl apply -f crds/servingfleets.yaml -f crds/acceleratorprofiles.yaml
    kubectl explain servingfleet.spec --recursive
    kubectl get servingfleets --output wide     # short: sf

A latency takes a string with units (`500ms`, `2s`, `1m30s`); all other quantities say their unit in
the name. There are no floats: prices and measured quantities are decimals in quotes. A field that
is left out is discovered, and status says what was found and where.

This page is written by `python crds/reference.py`.
"""


CONDITIONS = """\
## Conditions of a ServingFleet

| type | True means | reasons when it is not |
| --- | --- | --- |
| `Ready` | the fleet is scaled as asked; a gap in the metrics does not flip it | `InvalidSpec`, \
`TargetNotFound`, `TargetNotScalable`, `Forbidden`, `ConflictingAutoscaler`, `ConflictingOwner` |
| `MetricsAvailable` | what decisions need is measured; False only after several turns without | \
`NoSeries`, `Incomplete`, `Stale`, `Partial`, `Frozen`, `ClockSkew`, or why Prometheus gave no \
answer |
| `AbleToScale` | the target can be read and written | `FailedGetScale`, `FailedUpdateScale`, and \
those of `Ready` but for `InvalidSpec` |
| `ScalingActive` | demand and the ceiling of a replica are known; the loop may act | `Paused`, \
`RecommendOnly`, `ScalingDisabled`, `ReplicaUnknown`, `MetricsUnavailable`, and those of `Ready` |
| `ScalingLimited` | a bound or a limit holds the count (normally False: `DesiredWithinRange`) | \
when True: `TooManyReplicas`, `TooFewReplicas`, `ScaleUpLimit`, `ScaleDownLimit`, \
`CapacityShortage`, `ReplicasUnhealthy` |
| `ObjectivesAttainable` | one replica alone can meet every objective | `ObjectivesUnattainable`, \
`ReplicaUnknown` |

    kubectl wait --for=condition=Ready servingfleet/chat
    kubectl get servingfleet chat --output jsonpath='{.status.decision}'
"""


def reference() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(_kind(name) for name in KINDS), CONDITIONS])


def _kind(plural: str) -> str:
    definition = yaml.safe_load((FOLDER / f"{plural}.yaml").read_text("utf-8"))["spec"]
    version = definition["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    sections = [f"## {definition['names']['kind']}\n", f"{schema['description']}\n"]
    sections += ["| column | shows |", "| --- | --- |"]
    for column in version["additionalPrinterColumns"]:
        wide = " (`--output wide`)" if column.get("priority") else ""
        sections.append(f"| {column['name'].upper()} | {column['description']}{wide} |")
    for part in ("spec", "status"):
        if part in schema["properties"]:
            sections += ["", *_part(part, schema["properties"][part])]
    return "\n".join([*sections, ""])


def _part(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{schema['description']}\n"
    yield "| field | type | description |"
    yield "| --- | --- | --- |"
    for path, field, is_required in _fields(name, schema):
        marks = " **required**" if is_required else ""
        yield f"| `{path}`{marks} | {_type(field)} | {_cell(field['description'])} |"
    rules = list(_rules(schema))
    if rules:
        yield "\nRules across fields:\n"
        yield from (f"- {rule}" for rule in rules)


def _fields(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Every field below a schema, in the order of the file: its path, its schema, if required."""
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        yield below, field, name in schema.get("required", [])
        inner = field["items"] if field["type"] == "array" else field
        yield from _fields(f"{below}[]" if field["type"] == "array" else below, inner)


def _rules(schema: Mapping[str, Any]) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", []):
        yield rule["message"]
    inner = [schema["items"]] if "items" in schema else []
    for field in (*schema.get("properties", {}).values(), *inner):
        yield from _rules(field)


def _type(field: Mapping[str, Any]) -> str:
    """Type, bounds, choices and default, in one cell."""
    parts = [_plain_type(field)]
    if "enum" in field:
        parts = [", ".join(f"`{value}`" for value in field["enum"])]
    if "minimum" in field and "maximum" in field:
        parts.append(f"{field['minimum']} to {field['maximum']}")
    elif "minimum" in field:
        parts.append(f"at least {field['minimum']}")
    if "maxItems" in field:
        parts.append(f"{field.get('minItems', 0)} to {field['maxItems']} items")
    if "default" in field:
        parts.append(f"default `{field['default']}`")
    return "; ".join(parts)


def _plain_type(field: Mapping[str, Any]) -> str:
    if field["type"] == "array":
        return f"list of {field['items']['type']}s"
    if field["type"] == "string" and "0-9]+(" in field.get("pattern", "")[:10]:
        return "decimal string"
    return "time" if field.get("format") == "date-time" else str(field["type"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: list[str]) -> int:
    """Rewrite the page, or with `--check` only compare."""
    page = reference()
    if arguments == ["--check"]:
        is_current = README.exists() and README.read_text("utf-8") == page
        if not is_current:
            print("crds/README.md must be what crds/reference.py writes; run it", file=sys.stderr)
        return 0 if is_current else 1
    README.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
