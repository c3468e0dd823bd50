"""Ending in good order on a signal: SIGINT, SIGTERM and SIGHUP alike, at any time, and once.

with interrupting():      # while something blocks, before there is an event loop
    tools.prometheus()
result = run(work)        # None if a signal came; whatever `work` had open is closed then
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

Result = TypeVar("Result")

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `kill`, and a terminal that is closed."""


def run(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result | None:
    """Run `work` to its result; a signal cancels it, and when it has tidied up, returns None."""
    return asyncio.run(_until_signal(work))


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Have every one of these signals raise KeyboardInterrupt within the block, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _obeyed()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _until_signal(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result | None:
    loop, main_task = asyncio.get_running_loop(), asyncio.current_task()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if not stopped and main_task is not None:
            stopped = True
            main_task.cancel()

    for number in _obeyed():
        loop.add_signal_handler(number, stop)
    try:
        return await work()
    except asyncio.CancelledError:
        if not stopped:
            raise
        return None


def _obeyed() -> list[signal.Signals]:
    """All but a SIGHUP that is ignored on purpose: `nohup` outlives its terminal."""
    return [
        number
        for number in ENDING
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
