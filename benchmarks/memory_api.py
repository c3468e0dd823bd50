"""
How fast and how large the in-memory API server is: each number next to its bar.

    python benchmarks/memory_api.py [--large]

`--large` adds 1,000 custom objects with 20,000 pods. Client and server share one machine; the
server runs in a process of its own, whose resident memory is what is measured.
"""

import argparse
import asyncio
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from bench_objects import GROUP, Json, definition, pod, thing

from sim_cluster.api.server import MemoryApi

OBJECTS = 1000
LARGE_PODS = 20_000


@dataclass(frozen=True)
class Measure:
    """One number and the bar that it is held against."""

    name: str
    value: float
    unit: str
    bar: float
    is_floor: bool = False

    @property
    def holds(self) -> bool:
        """Whether the bar is met."""
        return self.value >= self.bar if self.is_floor else self.value <= self.bar

    def __str__(self) -> str:
        relation = ">=" if self.is_floor else "<="
        verdict = "ok" if self.holds else "MISSED"
        return (
            f"{self.name:<44} {self.value:>10.3f} {self.unit:<10}"
            f" {relation} {self.bar:<8g} {verdict}"
        )


class Server:
    """The server in a process of its own, and one connection to it."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sim_cluster.api", "--kubeconfig", str(self.kubeconfig)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.boot_s = time.perf_counter() - began
        config = yaml.safe_load(self.kubeconfig.read_text())
        host, port = config["clusters"][0]["cluster"]["server"].rpartition("/")[2].split(":")
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - loopback, own server
        self._connection = http.client.HTTPSConnection(host, int(port), context=context)
        token = config["users"][0]["user"]["token"]
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "User-Agent": "bench/1",
        }

    def send(self, method: str, path: str, body: Json | None = None) -> bytes:
        """One request on the kept connection."""
        data = None if body is None else json.dumps(body)
        headers = dict(self._headers)
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        self._connection.request(method, path, data, headers)
        reply = self._connection.getresponse()
        text = reply.read()
        if reply.status >= 400:
            message = f"{method} {path}: {reply.status} {text[:300]!r}"
            raise RuntimeError(message)
        return text

    def resident_megabytes(self) -> float:
        """Resident memory of the server. [MB]"""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1000

    def cpu_s(self) -> float:
        """Processor time that the server has used. [s]"""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(timeout=10)


def creates_per_s(server: Server, count: int) -> float:
    """Sequential creates on one connection. [1/s]"""
    path = f"/apis/{GROUP}/v1/namespaces/default/things"
    began = time.perf_counter()
    for index in range(count):
        server.send("POST", path, thing(f"thing-{index:04d}"))
    return count / (time.perf_counter() - began)


def list_ms(server: Server, path: str, times: int = 20) -> float:
    """Median time of a list, client included. [ms]"""
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        server.send("GET", path)
        durations.append(1000 * (time.perf_counter() - began))
    return sorted(durations)[times // 2]


def patch_ms(server: Server, count: int = 200) -> float:
    """Median time of a merge patch of status. [ms]"""
    durations = []
    for index in range(count):
        path = f"/apis/{GROUP}/v1/namespaces/default/things/thing-{index:04d}/status"
        began = time.perf_counter()
        server.send("PATCH", path, {"status": {"ready": index}})
        durations.append(1000 * (time.perf_counter() - began))
    return sorted(durations)[count // 2]


async def fresh_s(times: int = 5) -> float:
    """Median time to start and stop a server inside this process. [s]"""
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        async with MemoryApi():
            pass
        durations.append(time.perf_counter() - began)
    return sorted(durations)[times // 2]


def large(server: Server) -> list[Measure]:
    """The same server with 20,000 pods."""
    began = time.perf_counter()
    for index in range(LARGE_PODS):
        server.send("POST", "/api/v1/namespaces/default/pods", pod(index))
    rate = LARGE_PODS / (time.perf_counter() - began)
    pods = "/api/v1/namespaces/default/pods"
    by_label = list_ms(server, f"{pods}?labelSelector=app%3Dfleet-7", 5)
    by_node = list_ms(server, f"{pods}?fieldSelector=spec.nodeName%3Dnode-7", 5)
    return [
        Measure("pods created (20,000)", rate, "1/s", 500, is_floor=True),
        Measure("list of 20 in 20,000 pods, by label", by_label, "ms", 100),
        Measure("list of 8 in 20,000 pods, by node", by_node, "ms", 100),
        Measure("list of all 20,000 pods", list_ms(server, pods, 3), "ms", 1000),
        Measure("memory, 1,000 objects and 20,000 pods", server.resident_megabytes(), "MB", 400),
    ]


def measured(server: Server, *, is_large: bool) -> list[Measure]:
    """All numbers of one server."""
    empty = server.resident_megabytes()
    server.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    before_s = server.cpu_s()
    creates = creates_per_s(server, OBJECTS)
    of_cpu = OBJECTS / (server.cpu_s() - before_s)
    listed = list_ms(server, f"/apis/{GROUP}/v1/namespaces/default/things")
    found = [
        Measure("up", server.boot_s, "s", 1.0),
        Measure("memory, empty", empty, "MB", 100),
        Measure("creates, sequential, one client", creates, "1/s", 1000, is_floor=True),
        Measure("creates per second of the server's CPU", of_cpu, "1/s", 1000, is_floor=True),
        Measure("list of 1,000 objects, client included", listed, "ms", 20),
        Measure("status patch, median", patch_ms(server), "ms", 2),
        Measure("memory, 1,000 objects", server.resident_megabytes(), "MB", 100),
        Measure("a fresh API inside a process", asyncio.run(fresh_s()), "s", 0.2),
    ]
    return found + (large(server) if is_large else [])


def main() -> int:
    """Print all numbers; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="with 20,000 pods")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            measures = measured(server, is_large=arguments.large)
        finally:
            server.stop()
    for measure in measures:
        print(measure)
    return 0 if all(measure.holds for measure in measures) else 1


if __name__ == "__main__":
    sys.exit(main())
