"""The real control plane on this machine: build time, time to up, memory; next to the bars.

    python benchmarks/controlplane.py [--rebuild]

`--rebuild` builds from a cold Go build cache (in a temporary folder), which takes 5 to 20 minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from sim_cluster.controlplane import build, roles, serve
from sim_cluster.processes import Child, temporary_folder

BUILD_BAR_S = 20 * 60.0
UP_BAR_S = 10.0
MEMORY_BAR_BYTES = 2**30
RUNS = 3


def main() -> int:
    """Print the numbers; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rebuild", action="store_true")
    options = parser.parse_args()
    held = [_build(cold=options.rebuild)]
    seconds, memory = zip(*(asyncio.run(_run()) for _ in range(RUNS)), strict=True)
    held += [
        _show("time to up, median", sorted(seconds)[RUNS // 2], UP_BAR_S, "s"),
        _show("resident memory", max(memory) / 2**20, MEMORY_BAR_BYTES / 2**20, "MiB"),
    ]
    return 0 if all(held) else 1


def _build(*, cold: bool) -> bool:
    if not cold:
        if build.cached_path().exists():
            print("build: cached")
            return True
        return _timed_build()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"GOCACHE": f"{folder}/go", "XDG_CACHE_HOME": f"{folder}/cache"}
        held = _timed_build()
        del os.environ["GOCACHE"], os.environ["XDG_CACHE_HOME"]
    return held


def _timed_build() -> bool:
    started_s = time.monotonic()
    build.binary(lambda line: print(line, file=sys.stderr))
    return _show("build", time.monotonic() - started_s, BUILD_BAR_S, "s")


async def _run() -> tuple[float, int]:
    programs = roles.one_program(build.binary())
    with temporary_folder() as folder:
        started_s = time.monotonic()
        async with serve.serving(programs, folder) as plane:
            return time.monotonic() - started_s, sum(map(_memory_bytes, plane.processes))


def _memory_bytes(child: Child) -> int:
    """Read the resident set of a process. [bytes]"""
    status = Path(f"/proc/{child.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def _show(what: str, value: float, bar: float, unit: str) -> bool:
    held = value <= bar
    print(f"{what}: {value:.1f} {unit} (bar: {bar:g} {unit}) {'ok' if held else 'MISSED'}")
    return held


if __name__ == "__main__":
    sys.exit(main())
