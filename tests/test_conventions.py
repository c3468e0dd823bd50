"""The conventions of this repository, as tests: names carry units, rooms have honest names."""

import ast
import operator
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "operator" / "fleetline"
CORE = sorted(path for room in ("model", "policy") for path in (PACKAGE / room).glob("*.py"))

UNITS = (
    *("_s", "_per_s", "_tokens", "_requests", "_bytes", "_flop", "_values", "_parameters"),
    *("_per_token", "_per_byte", "_per_hour", "_usd", "_replicas", "_per_million_tokens"),
    *("_per_s2", "_s2", "_share", "_ratio", "_probability", "_factor", "_per_replica"),
    *("_per_step", "_utilization", "_pairs", "_load", "_sequences", "_concurrency"),
)
"""How the name of a float may end."""

DIMENSIONLESS = {
    *("concurrency", "utilization", "headroom", "tolerance", "dispersion", "efficiency"),
    *("loop_gain", "amplification", "percentile", "quantile"),
    # shares of a peak in `Efficiency`, and learned factors in `Calibration`
    *("bandwidth", "compute", "prefill", "expert_compute", "expert_prefill", "kv_bandwidth"),
    *("four_bit_compute", "step", "sequence", "utilization_of_prefill", "attainment"),
    # of a calibration sample, in standard deviations; a probability; Little's law
    *("surprise", "erlang_c", "load"),
}
"""Floats without a unit: the closed list."""

BANNED = {"utils", "helpers", "common", "core", "base", "manager", "types", "constants", "misc"}
FOLDERS = ("operator/fleetline", "sim_cluster", "tests", "benchmarks")


def floats(tree: ast.AST) -> Iterator[str]:
    """Names of everything annotated as a plain float, and of functions that return one."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="float")):
                yield name
            case ast.arg(arg=name, annotation=ast.Name(id="float")):
                yield name
            case ast.FunctionDef(name=name, returns=ast.Name(id="float")):
                yield name


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_float_in_the_core_says_its_unit(path: Path) -> None:
    names = set(floats(ast.parse(path.read_text("utf-8"))))

    assert {name for name in names - DIMENSIONLESS if not f"_{name}".endswith(UNITS)} == set()


def test_the_folder_operator_does_not_hide_the_standard_library() -> None:
    assert operator.add(1, 2) == 3
    assert not (ROOT / "operator" / "__init__.py").exists()


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_or_folder_has_a_name_that_says_nothing(folder: str) -> None:
    named = {path.stem for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ""}}

    assert named & BANNED == set()
