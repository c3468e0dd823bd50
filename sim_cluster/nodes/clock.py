"""Simulated time: real time, faster or slower, or moved by hand in tests."""

from __future__ import annotations

import time


class LiveClock:
    """
    Time that passes `speed` times as fast as on the wall, from 0 at the start.

    At a speed other than 1 exported latencies are in simulated seconds while Prometheus counts
    real ones: rates then read `speed` times too high beside latencies. An operator under
    observation needs speed 1; compress the load shape instead.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"speed must be > 0, got {speed:g}")
        self.speed = speed
        self._start_s = time.monotonic()

    def now_s(self) -> float:
        """Seconds simulated so far."""
        return (time.monotonic() - self._start_s) * self.speed

    def wall_s(self, simulated_s: float) -> float:
        """Real seconds in which so many simulated ones pass."""
        return simulated_s / self.speed
