"""The reference is what the code says: commands, keys, reasons, conditions, events, metrics."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fleetline.adapters.metrics import OwnMetrics
from fleetline.entrypoints import reporting
from fleetline.entrypoints.cli import COMMANDS, build
from fleetline.entrypoints.explaining import explanation
from fleetline.entrypoints.findings import counts
from fleetline.entrypoints.predicting import COLUMNS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "operator" / "docs"
PAGE = (DOCS / "reference.md").read_text("utf-8")
RESULTS = yaml.safe_load((DOCS / "results.yaml").read_text("utf-8"))
KEYS = RESULTS["keys"]
OBJECTIVE = ["--objective", "TimeToFirstToken:p95:1s"]
MODEL = ["--model", "llama-3.1-8b", "--accelerator", "L40S", *OBJECTIVE, "--output", "json"]


def printed(*arguments: str) -> Any:
    result = CliRunner().invoke(build(), [*arguments, *MODEL], catch_exceptions=False)
    return json.loads(result.stdout)


def test_the_page_is_what_the_code_says() -> None:
    script = runpy.run_path(str(DOCS / "reference.py"))

    assert script["reference"]() == PAGE, "run python operator/docs/reference.py"


def test_the_expected_fields_are_those_of_the_definitions() -> None:
    script = runpy.run_path(str(DOCS / "reference.py"))

    assert script["FIELDS"].read_text("utf-8") == script["expected_fields"]()


def test_a_stale_page_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = runpy.run_path(str(DOCS / "reference.py"))
    script["main"].__globals__["PAGE"] = tmp_path / "reference.md"

    assert script["main"](["--check"]) == 1
    assert "reference.md must be what" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_each_of_its_options_says_what_it_is(command: str) -> None:
    section = PAGE.partition(f"## `fleetline {command}`\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.count(" | ") == 3]

    assert section
    assert [row[0] for row in rows if len(row[3].strip(" |")) < 3] == []


def test_the_keys_of_a_plan_are_those_that_it_prints() -> None:
    lengths = ["--prompt-tokens", "500", "--output-tokens", "100"]

    assert printed("plan", "--rate", "1", *lengths).keys() == KEYS["plan"].keys()


def test_the_keys_of_a_replay_are_those_that_it_prints() -> None:
    trace = str(ROOT / "tests" / "data" / "replay" / "office_morning.csv")

    told = printed("replay", trace, "--policy", "static", "--startup", "60s", "--end", "60")

    assert told.keys() == KEYS["replay"].keys() - {"sweep"}
    assert told["policies"][0].keys() == KEYS["replay policy"].keys()
    assert told["bounds"]["clairvoyant"].keys() == KEYS["replay policy"].keys()


def test_the_columns_of_a_prediction_are_those_that_are_added() -> None:
    assert tuple(KEYS["predict"]) == COLUMNS


def test_the_keys_of_explain_and_doctor_are_those_that_they_print() -> None:
    told = explanation({"metadata": {"namespace": "n", "name": "f"}})

    assert told.keys() == KEYS["explain"].keys()
    assert {*counts([]), "findings"} == KEYS["doctor"].keys()


def test_every_event_is_one_that_is_written() -> None:
    source = Path(reporting.__file__).read_text("utf-8")
    written = set(re.findall(r'"(Scaled\w+|\w+Change)"', source))

    assert written == RESULTS["events"].keys()


def test_every_metric_is_on_the_page() -> None:
    shown = re.findall(r"^# HELP (\w+)", OwnMetrics().exposition().decode(), re.MULTILINE)

    named = [name for name in shown if not name.endswith("_created")]  # the library's own
    assert len(named) > 15
    assert [name for name in named if f"| `{name}` |" not in PAGE] == []
