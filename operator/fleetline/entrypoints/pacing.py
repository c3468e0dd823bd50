"""When the next round is due: after about a period, or earlier if something changed."""

import asyncio
import contextlib
import random
from typing import Final

_CHANCE: Final = random.Random()  # noqa: S311 - spreads in time, no secret
JITTER: Final = 0.1
"""Share of a period by which rounds are spread, so that restarts do not align all operators."""

LEAST_GAP_S: Final = 1.0
"""Between two rounds, however many wake-ups come. [s]"""


class Pace:
    """Waits between rounds."""

    def __init__(self) -> None:
        """Begin with nothing to hasten or to end."""
        self.woken = asyncio.Event()
        """Set by what is not to wait for the next period."""
        self.ended = asyncio.Event()
        """Set when no round is to come any more."""

    async def until_due(self, started_s: float, period_s: float) -> None:
        """Sleep until the next round is due, a wake-up brings it forward, or the end comes."""
        loop = asyncio.get_running_loop()
        wakes = [asyncio.create_task(event.wait()) for event in (self.woken, self.ended)]
        try:
            left_s = max(0.0, started_s + period_s - loop.time())
            await asyncio.wait(wakes, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wake in wakes:
                wake.cancel()
        gap_s = started_s + min(LEAST_GAP_S, period_s) - loop.time()
        if gap_s > 0:
            await self.pause(gap_s)

    async def pause(self, seconds: float) -> None:
        """Sleep, or until the end comes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), seconds)


def spread_s(period_s: float) -> float:
    """About a period, different at each call. [s]"""
    return period_s * (1 + JITTER * (_CHANCE.random() - 0.5))
