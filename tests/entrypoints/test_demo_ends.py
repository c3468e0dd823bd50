"""A signal ends the demo at any time, and nothing is left: no process, no file, no port."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sim_cluster import tools
from tests.sim_cluster.launch.leftovers import is_open, processes_that_mention

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


class Demo:
    """The command, with a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "temporary"
        self.folder.mkdir()
        self.out = folder / "out"
        command = [sys.executable, "-m", "fleetline", "demo", "--out", str(self.out)]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, words: str) -> str:
        assert self.process.stdout is not None
        printed = ""
        for line in self.process.stdout:
            printed += line
            if words in line:
                return line
        raise AssertionError(printed)

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        printed, _ = self.process.communicate(timeout=60)
        return self.process.returncode, printed

    def leftovers(self) -> list[str]:
        files = [str(path) for path in self.folder.rglob("*")]
        return files + processes_that_mention(str(self.folder))


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[[], Demo]]:
    tools.prometheus()
    tools.kubectl()
    started: list[Demo] = []

    def start() -> Demo:
        started.append(Demo(tmp_path))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_leaves_nothing(
    demo: Callable[[], Demo], number: signal.Signals
) -> None:
    command = demo()
    kubeconfig = Path(command.until("--kubeconfig").split("--kubeconfig ")[1].split()[0])
    server = next(
        line.split()[-1] for line in kubeconfig.read_text().splitlines() if "server:" in line
    )
    command.until("traffic begins")

    code, printed = command.stop(number)

    assert (code, "Traceback" in printed) == (0, False)
    assert "stopped" in printed
    assert command.leftovers() == []
    assert not is_open(server)
    assert not command.out.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after_s", [0.2, 1.0, 2.0, 3.5])
def test_a_signal_in_the_middle_of_the_start_leaves_nothing(
    demo: Callable[[], Demo], number: signal.Signals, after_s: float
) -> None:
    command = demo()
    command.until("looking for")
    time.sleep(after_s)

    code, printed = command.stop(number)

    assert (code, "Traceback" in printed) == (0, False)
    assert command.leftovers() == []
