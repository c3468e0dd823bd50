"""A Prometheus that fails for days leaves nothing behind: no sockets, no threads, no memory."""

import contextlib
import gc
import threading
import tracemalloc
from pathlib import Path

from fleetline.adapters.prometheus import WORKERS, Prometheus, PrometheusError

NOWHERE = "http://127.0.0.1:1"


async def fail(prometheus: Prometheus, times: int) -> None:
    for _ in range(times):
        with contextlib.suppress(PrometheusError):
            await prometheus.query("up")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_thousand_failures_leave_nothing_behind() -> None:
    threads_before = threading.active_count()
    prometheus = Prometheus(NOWHERE, deadline_s=1.0)
    await fail(prometheus, 50)
    tracemalloc.start()
    before_files, before_bytes = open_files(), tracemalloc.get_traced_memory()[0]

    await fail(prometheus, 1000)
    gc.collect()
    grown_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    after_files, threads_after = open_files(), threading.active_count()
    tracemalloc.stop()
    prometheus.close()

    assert after_files == before_files
    assert threads_after <= threads_before + WORKERS
    assert grown_bytes < 100_000
