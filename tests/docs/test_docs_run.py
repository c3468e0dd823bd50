"""The commands in the documentation, run: what is shown to people has to work."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetline.entrypoints.cli import COMMANDS, build

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "operator" / "docs").rglob("*.md"))]


def shown_commands() -> list[str]:
    """Lines of the pages that begin with `$ fleetline`."""
    return [
        line.removeprefix("$ fleetline ")
        for page in PAGES
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("$ fleetline ")
    ]


def linked_files() -> list[tuple[Path, str]]:
    """Relative links of the pages, with the page that has them."""
    return [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    ]


@pytest.mark.parametrize("command", shown_commands())
def test_a_shown_command_runs(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    result = CliRunner().invoke(build(), shlex.split(command), catch_exceptions=False)

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("page", "target"), linked_files(), ids=[f"{page.name}:{link}" for page, link in linked_files()]
)
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    assert (page.parent / target).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(build(), [command, "--help"], catch_exceptions=False)

    assert result.exit_code == 0
    assert command in result.output
