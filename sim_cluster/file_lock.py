"""One at a time, across processes: whoever makes a cached file holds its lock while it does."""

from __future__ import annotations

import fcntl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

_POLL_S = 0.2


@contextmanager
def locked(path: Path, *, given_up: threading.Event | None = None) -> Iterator[None]:
    """Hold an exclusive lock on the file at `path`, which is created if absent and never removed.

    While it waits, setting `given_up` ends the wait with an error. The wait is a poll, so that a
    signal interrupts it. The lock ends with the process at latest.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        while not _taken(file.fileno()):
            if given_up is not None and given_up.is_set():
                raise InterruptedError(f"the wait for {path} was given up")
            time.sleep(_POLL_S)
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
