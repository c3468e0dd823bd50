"""Children and temporary folders: gone at the end of their block, whatever they do."""

import os
import sys
import time
from pathlib import Path

import pytest

from sim_cluster.processes import StartError, free_ports, running, temporary_folder, until


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_that_ignores_signals_is_gone_after_its_block(tmp_path):
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"

    with running("stubborn", [sys.executable, "-c", stubborn], tmp_path / "log") as child:
        pid = child.pid

    assert not is_alive(pid)


def test_what_a_child_leaves_in_its_temporary_folder_goes_with_the_folder(tmp_path):
    script = "import tempfile, time; print(tempfile.mkstemp()[1], flush=True); time.sleep(60)"

    with temporary_folder() as folder, running("c", [sys.executable, "-c", script], folder / "log"):
        deadline_s = time.monotonic() + 10
        while not (folder / "log").read_text() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        left = Path((folder / "log").read_text().strip())
        assert left.parent == folder

    assert not left.exists()


def test_grandchildren_go_too(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pid_file}; wait"

    with running("parent", ["sh", "-c", script], tmp_path / "log"):
        deadline_s = time.monotonic() + 10
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        grandchild = int(pid_file.read_text())
        assert is_alive(grandchild)

    deadline_s = time.monotonic() + 5
    while is_alive(grandchild) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not is_alive(grandchild)


async def test_a_child_that_ends_too_early_is_told_with_its_last_words(tmp_path):
    with (
        running("short", ["sh", "-c", "echo no luck; exit 3"], tmp_path / "log") as child,
        pytest.raises(StartError, match=r"exit code 3: no luck"),
    ):
        await until(lambda: False, child, timeout_s=10, what="readiness")


async def test_a_child_that_is_too_slow_is_told(tmp_path):
    with (
        running("slow", ["sleep", "60"], tmp_path / "log") as child,
        pytest.raises(StartError, match=r"readiness of slow must come within 0.1 s"),
    ):
        await until(lambda: False, child, timeout_s=0.1, what="readiness")


async def test_a_polite_stop_lets_the_child_finish(tmp_path):
    polite = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"

    with running("polite", ["sh", "-c", polite], tmp_path / "log") as child:
        await until(lambda: "up" in child.last_words(), child, timeout_s=10, what="a word")
        code = await child.stop(grace_s=10)

    assert code == 7
    assert child.last_words() == "up\nbye"


def test_a_temporary_folder_goes_with_its_content():
    with temporary_folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")

    assert not folder.exists()


def test_free_ports_are_all_different():
    assert len(set(free_ports(20))) == 20


def test_children_do_not_share_our_process_group(tmp_path):
    with running("own", ["sleep", "60"], tmp_path / "log") as child:
        assert os.getpgid(child.pid) == child.pid
