"""Keys to look at again: each at most once at a time, failures later and later."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

_FIRST_RETRY_S = 0.05
_LONGEST_RETRY_S = 10.0

Key = TypeVar("Key")


class WorkQueue(Generic[Key]):
    """A queue in which a key that waits is not added twice, nor given to two workers at once."""

    def __init__(self) -> None:
        self._waiting: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._taken: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nobody works; timers may still be running."""
        return not self._waiting and not self._taken

    def add(self, key: Key) -> None:
        """Have the key looked at soon; while it is being looked at, once more after that."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._taken:
            self._waiting.append(key)
            self._changed.set()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Have the key looked at after a delay; the earlier of two delays counts."""
        loop = asyncio.get_running_loop()
        running = self._timers.get(key)
        if running is not None:
            if running.when() <= loop.time() + delay_s:
                return
            running.cancel()
        self._timers[key] = loop.call_later(delay_s, self._due, key)

    async def take(self) -> Key:
        """Wait for a key; it must be given back with `done`, and `succeeded` or `failed`."""
        while not self._waiting:
            self._changed.clear()
            await self._changed.wait()
        key = self._waiting.popleft()
        self._dirty.discard(key)
        self._taken.add(key)
        return key

    def done(self, key: Key) -> None:
        """Give a key back, so that it can be taken again."""
        self._taken.discard(key)
        if key in self._dirty:
            self._waiting.append(key)
            self._changed.set()

    def succeeded(self, key: Key) -> None:
        """Forget its failures."""
        self._failures.pop(key, None)

    def failed(self, key: Key) -> None:
        """Have the key looked at again, after a pause that doubles with each failure."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(_FIRST_RETRY_S * 2 ** (failures - 1), _LONGEST_RETRY_S))

    def close(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)
