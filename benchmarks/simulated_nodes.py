"""
How much the simulated hardware costs: many idle pods through the in-memory API, and busy replicas.

    python benchmarks/simulated_nodes.py [--pods 20000] [--nodes 2500]

Prints every number next to its bar.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path

from sim_cluster.api.server import MemoryApi
from sim_cluster.api_client import ApiClient
from sim_cluster.nodes import NodeSpec, Simulation, catalog, simulate
from sim_cluster.nodes.engine_spec import read_engine
from sim_cluster.nodes.live_replica import LiveReplica
from sim_cluster.nodes.pool import TICK_S, ReplicaPool
from sim_cluster.resources import PODS
from sim_cluster.traffic.arrivals import draw_arrivals
from sim_cluster.traffic.endpoints import SelectedPods
from sim_cluster.traffic.lengths import LogNormalLengths
from sim_cluster.traffic.router import Router
from sim_cluster.traffic.shapes import Constant

IDLE_S = 20.0
BUSY_S = 60.0
MEBIBYTE = 2**20


def a_pod(name: str, node: str) -> dict[str, object]:
    """Write a pod that serves, bound to a node."""
    container = {"name": "engine", "image": "vllm", "args": ["serve", "llama-3.1-8b"]}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [container]},
    }


async def idle(pods: int, nodes: int) -> None:
    """Hold many pods without traffic on an in-memory API."""
    folder = Path(tempfile.mkdtemp(prefix="simulated-nodes-"))
    async with MemoryApi(port=0) as api:
        api.write_kubeconfig(folder / "kubeconfig")
        async with ApiClient.from_kubeconfig(folder / "kubeconfig") as client:
            begin_s = time.monotonic()
            specs = [NodeSpec(count=nodes)]
            async with simulate(client, specs, startup="1s", most_listeners=0) as sim:
                print(f"{nodes} nodes registered: {time.monotonic() - begin_s:.1f} s")
                await fill(client, pods, sim.keeper.nodes)
                print(f"{pods} pods created: {time.monotonic() - begin_s:.1f} s")
                while not all_ready(sim, pods):  # noqa: ASYNC110 - a benchmark looks now and then
                    await asyncio.sleep(0.2)
                print(f"{pods} pods Ready: {time.monotonic() - begin_s:.1f} s (bar 180)")
                used_s = time.process_time()
                await asyncio.sleep(IDLE_S)
                share = (time.process_time() - used_s) / IDLE_S
                print(f"at rest, API and leases of {nodes} nodes included: {share:.2f} cores")
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEBIBYTE
                print(f"memory, API included: {peak:.0f} MiB")


async def fill(client: ApiClient, pods: int, nodes: list[str]) -> None:
    """Create the pods, many at a time."""
    slots = asyncio.Semaphore(64)

    async def create(index: int) -> None:
        async with slots:
            await client.create(PODS, a_pod(f"pod-{index}", nodes[index % len(nodes)]))

    await asyncio.gather(*(create(index) for index in range(pods)))


def all_ready(sim: Simulation, pods: int) -> bool:
    """Whether the API server knows that every pod is Ready."""
    known = sim.pods.values()
    return len(known) == pods and all(pod.is_ready and pod.is_reported for pod in known)


def busy(replicas: int, rate_per_s: float) -> None:
    """Serve a steady load as fast as possible, a scrape of every replica each second included."""
    pool = ReplicaPool()
    spec = read_engine(
        {"metadata": {}, **a_pod("", "")}, catalog.accelerator("H100-SXM").accelerator
    )
    assert spec is not None
    keys = [("default", f"chat-{index}") for index in range(replicas)]
    for key in keys:
        pool.add(LiveReplica(key, spec, created_s=0.0))
    endpoints = SelectedPods("default", {})
    endpoints.ready = tuple(keys)
    router = Router(("default", "chat"), pool, model_name="chat", endpoints=endpoints)
    pool.sources.append(router)
    lengths = LogNormalLengths(mean_prompt_tokens=800, mean_output_tokens=150)
    router.begin(draw_arrivals(Constant(level_per_s=rate_per_s, duration_s=BUSY_S), lengths))
    begin_s, texts = time.perf_counter(), 0
    for tick in range(int(BUSY_S / TICK_S)):
        pool.advance((tick + 1) * TICK_S)
        if tick % round(1 / TICK_S) == 0:
            texts += sum(len(one.metrics_text()) for one in pool.replicas.values())
    share = (time.perf_counter() - begin_s) / BUSY_S
    print(
        f"{rate_per_s:g} req/s on {replicas} replicas, each scraped every second: "
        f"{share:.3f} cores (bar 0.5); {router.truth.finished} answered, "
        f"{texts / BUSY_S / 1e6:.2f} MB/s of metrics"
    )


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=2_500)
    wanted = parser.parse_args()
    busy(20, 50.0)
    asyncio.run(idle(wanted.pods, wanted.nodes))


if __name__ == "__main__":
    main()
