"""Write operator/docs/reference.md from the code, and the fields that doctor expects from crds/.

python operator/docs/reference.py          # rewrite both
python operator/docs/reference.py --check  # exit code 1 if one is out of date
"""

from __future__ import annotations

import inspect
import sys
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import typer
import yaml

from fleetline.adapters.metrics import OwnMetrics
from fleetline.entrypoints.checks_definitions import EXPECTED, KINDS, fields_of
from fleetline.entrypoints.cli import COMMANDS, build
from fleetline.entrypoints.condition_reasons import ASPECTS, HINTS
from fleetline.entrypoints.reporting import ALARMS
from fleetline.policy.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = FOLDER / "reference.md"
FIELDS = ROOT / "operator" / "fleetline" / "entrypoints" / EXPECTED
RESULTS = yaml.safe_load((FOLDER / "results.yaml").read_text("utf-8"))

INTRODUCTION = """\
# Reference

Commands, what they print for scripts, reasons, conditions, events and metrics. Fields of the API
are in [crds/README.md](../../crds/README.md), values of the chart in
[charts/fleetline/README.md](../../charts/fleetline/README.md).

This page is written by `python operator/docs/reference.py`.

## Exit codes

| code | says |
| --- | --- |
| 0 | ok |
| 1 | a negative finding; which, stands with the command |
| 2 | wrong use, or the cluster cannot be read: `error: <where> must be <rule>, got <value>` |
"""

RUN = """\
`run` is the operator, what the image starts. Rates are over four scrapes, or four periods up to
15 s, whichever is longer. A turn may take as long as a period, but 2 to 10 s; a request to the API
server 0.8 of that, a query of Prometheus as long. With `--leader-elect`, the environment's
`POD_NAMESPACE` and `POD_NAME` say where the Lease is and who holds it. The chart sets all of this
from its values.
"""

PARTS = {
    "replay policy": "one entry of `policies`",
    "backtest side": "`ran` and `fleetline`",
    "backtest window": "one entry of `timeline`, and columns of `--output csv`",
}
"""Keys inside the answer of a command, and where they stand."""

UNITS = (
    ("_requests_per_second", "requests/s"),
    ("_per_round", "queries"),
    ("_replicas", "replicas"),
    ("_seconds", "s"),
    ("_ratio", "1"),
    ("_leader", "0 or 1"),
)
"""Suffix of a metric's name, and its unit."""


def reference() -> str:
    """Return the whole page."""
    application = typer.main.get_command(build())
    commands: dict[str, Any] = vars(application)["commands"]
    return "\n".join(
        [
            INTRODUCTION,
            *(line for name in COMMANDS for line in _command(name, commands[name])),
            *_reasons(),
            *_conditions(),
            *_events(),
            *_metrics(),
        ]
    )


def expected_fields() -> str:
    """Return every field of the definitions, one a line."""
    lines = ["# Fields that this version reads and writes; written by operator/docs/reference.py"]
    for plural in KINDS:
        definition = yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text("utf-8"))
        lines += [f"{plural} {path}" for path in sorted(fields_of(definition))]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table line by line, and an empty line after it."""
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join('---' for _ in header)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## `fleetline {name}`\n"
    yield f"{' '.join(command.help.split())}\n"
    if name == "run":
        yield RUN
    if finding := RESULTS["findings"].get(name):
        yield f"Exit code 1: {finding}.\n"
    hints = get_type_hints(inspect.unwrap(command.callback))
    parameters = [one for one in command.params if one.name in hints]
    header = ("argument or option", "takes", "default", "meaning")
    yield from table(header, (_parameter(one, hints[one.name]) for one in parameters))
    for key, rows in RESULTS["keys"].items():
        if key.split()[0] == name:
            kind = "columns that are added" if name == "predict" else "keys of `--output json`"
            of = f"; {PARTS[key]}" if key in PARTS else ""
            yield f"{kind.capitalize()}{of}:\n"
            yield from table(("key", "meaning"), ((f"`{k}`", v) for k, v in rows.items()))


def _parameter(one: Any, hint: Any) -> tuple[str, str, str, str]:
    names = (
        ", ".join(f"`{word}`" for word in one.opts)
        if one.opts[0].startswith("-")
        else f"`{one.name.upper()}`"
    )
    takes = _kind(hint)
    bounds = [getattr(one, "min", None), getattr(one, "max", None)]
    if bounds != [None, None]:
        low, high = bounds
        takes += f", at least {low}" if high is None else f", {low} to {high}"
    meaning = " ".join((one.help or "").split())
    if one.envvar:
        meaning += f" Environment: `{one.envvar}`."
    return names, takes, _default(one), meaning


def _kind(hint: Any) -> str:
    """What a type takes, in words of people."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) is list:
        return f"{_kind(get_args(hint)[0])}; may be repeated"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(f"`{one.value}`" for one in hint)
    words = {bool: "flag", int: "integer", float: "number", Path: "path", str: "text"}
    return words.get(hint) or str(hint.__name__)


def _default(one: Any) -> str:
    value = one.default
    if one.required:
        return "**required**"
    if value is None or value in ([], ()):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(f"`{item}`" for item in value)
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _reasons() -> Iterator[str]:
    yield "## Reasons of a decision\n"
    yield "In `status.decision` (reason and steps), events, `fleetline_turns_total` and the log.\n"
    yield from table(("reason", "says"), ((f"`{one}`", one.description) for one in Reason))


def _conditions() -> Iterator[str]:
    yield "## Conditions\n"
    rows = [
        (
            f"`{kind}`",
            one.means,
            one.normal,
            ", ".join(f"`{reason}`" for reason in one.good),
            ", ".join(f"`{reason}`" for reason in one.bad),
        )
        for kind, one in ASPECTS.items()
    ]
    header = ("type", "True means", "as it should be", "reason then", "reasons otherwise")
    yield from table(header, rows)
    yield "`Unknown` with `NotYetKnown` stands for what was not looked at yet.\n"
    yield "What to do about a reason:\n"
    yield from table(("reason", "mend"), ((f"`{name}`", hint) for name, hint in HINTS.items()))


def _events() -> Iterator[str]:
    yield "## Events\n"
    yield "On transitions only.\n"
    rows = [(f"`{name}`", kind, when) for name, (kind, when) in RESULTS["events"].items()]
    alarms = ", ".join(f"`{one}`" for one in ALARMS)
    rows.append(("the condition's reason", "Warning", f"one of {alarms} turned False"))
    rows += [(f"`{one}Again`", "Normal", f"`{one}` is True again") for one in ALARMS]
    yield from table(("reason", "type", "when"), rows)


def _metrics() -> Iterator[str]:
    yield "## Metrics of the operator\n"
    yield "On `--metrics-port`, path `/metrics`. Series of a fleet that is gone are removed;"
    yield "what is not known is NaN.\n"
    registry: Any = OwnMetrics().registry
    rows = []
    for collector in registry._collector_to_names:  # noqa: SLF001 - listed nowhere else
        for family in collector.describe():
            names = vars(collector).get("_labelnames") or vars(family).get("_labelnames", ())
            labels = ", ".join(f"`{name}`" for name in names)
            total = "_total" if family.type == "counter" else ""
            name = f"{family.name}{total}"
            rows.append((f"`{name}`", family.type, labels, _unit(name), family.documentation))
    yield from table(("name", "type", "labels", "unit", "meaning"), rows)


def _unit(name: str) -> str:
    if name.endswith("_total"):
        return "count"
    return next(unit for suffix, unit in UNITS if name.endswith(suffix))


def main(arguments: list[str]) -> int:
    """Rewrite both files, or with `--check` only compare."""
    written = {PAGE: reference(), FIELDS: expected_fields()}
    if arguments != ["--check"]:
        for path, text in written.items():
            path.write_text(text, "utf-8")
        return 0
    stale = [p for p, text in written.items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        print(
            f"{path.name} must be what operator/docs/reference.py writes; run it", file=sys.stderr
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
