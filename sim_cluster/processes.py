"""Child processes that never outlive us, and ports and folders that they use.

Every child leads a process group of its own, which is killed as a whole: at the end of its `with`,
when the interpreter exits, and, where there is `setpriv`, by the kernel if we are killed.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_POLL_S = 0.02
_LAST_WORDS = 15
_LIVE: set[subprocess.Popen[bytes]] = set()
_FOLDERS: set[Path] = set()


class StartError(RuntimeError):
    """A part of the simulated cluster did not come up."""


class Child:
    """A running program with its output in a file."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """Return the end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LAST_WORDS:])

    async def stop(self, *, grace_s: float) -> int | None:
        """Ask it to end with SIGTERM and wait; whatever is left after `grace_s` is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        while self.exit_code is None and time.monotonic() < deadline_s:  # noqa: ASYNC110 (a process)
            await asyncio.sleep(_POLL_S)
        ended = self.exit_code
        _kill(self._process)
        return ended


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Child]:
    """Run a program for the length of the `with` block, then kill it and all its descendants.

    Its temporary files lie beside its log: it has no time to remove them.
    """
    surroundings = {**(os.environ if environment is None else environment)}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_ending_with_us(), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=surroundings | {"TMPDIR": str(log.parent)},
            start_new_session=True,
        )
    _LIVE.add(process)
    try:
        yield Child(name, process, log)
    finally:
        _kill(process)


async def until(
    is_ready: Callable[[], object], child: Child, *, timeout_s: float, what: str
) -> None:
    """Poll until `is_ready()`; StartError with the child's last words if it ends or is too slow."""
    deadline_s = time.monotonic() + timeout_s
    while not await asyncio.to_thread(is_ready):
        if child.exit_code is not None:
            raise StartError(
                f"cannot start {child.name}: it ended with exit code {child.exit_code}: "
                f"{child.last_words()}"
            )
        if time.monotonic() > deadline_s:
            raise StartError(
                f"{what} of {child.name} must come within {timeout_s:g} s, got nothing: "
                f"{child.last_words()}"
            )
        await asyncio.sleep(_POLL_S)


@contextlib.contextmanager
def temporary_folder(prefix: str = "fleetline-sim-") -> Iterator[Path]:
    """Make a folder that is gone at the end, also if the interpreter exits early."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _FOLDERS.add(folder)
    try:
        yield folder
    finally:
        _remove(folder)


def free_ports(count: int) -> list[int]:
    """Pick ports on loopback that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _ending_with_us() -> list[str]:
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "KILL", "--"] if program else []


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _LIVE.discard(process)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _FOLDERS.discard(folder)


@atexit.register
def _leave_nothing() -> None:
    for process in tuple(_LIVE):
        _kill(process)
    for folder in tuple(_FOLDERS):
        _remove(folder)
