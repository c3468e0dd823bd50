"""A Prometheus that fails for days leaves nothing behind: no sockets, no threads, no memory."""

import contextlib
import gc
import threading
import tracemalloc
from pathlib import Path

from fleetline.adapters.prometheus import Prometheus, PrometheusError

NOWHERE = "http://127.0.0.1:1"


async def fail(prometheus: Prometheus, times: int) -> None:
    for _ in range(times):
        with contextlib.suppress(PrometheusError):
            await prometheus.query("up")


def held() -> tuple[int, int]:
    """Open files and threads."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


async def test_a_thousand_failures_leave_nothing_behind() -> None:
    prometheus = Prometheus(NOWHERE, deadline_s=1.0)
    await fail(prometheus, 50)
    tracemalloc.start()
    before_held, before_bytes = held(), tracemalloc.get_traced_memory()[0]

    await fail(prometheus, 1000)
    gc.collect()
    grown_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    after_held = held()
    tracemalloc.stop()
    prometheus.close()

    assert after_held == before_held
    assert grown_bytes < 100_000
