"""
Many fleets on a simulated cluster: what the operator costs, printed next to the bars.

    python benchmarks/scale.py [--fleets 1000] [--pods 20000] [--hold 600]
    python benchmarks/scale.py --backend controlplane --pods 5000

The fleets rest: no requests come, and every Deployment has the least replicas that its fleet asks
for. So every write that is counted while they are held is one too many.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import signal
import statistics
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from operator_reading import Reading, between, percentile, read

from fleetline.control.assess import FIRST_TURNS
from sim_cluster.api.counts import WRITES
from sim_cluster.api_client import ApiClient
from sim_cluster.informer import Informer, Listener
from sim_cluster.launch import Cluster, cluster
from sim_cluster.nodes import NodeSpec
from sim_cluster.resources import DEPLOYMENTS, NAMESPACES, Resource

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

FLEETS = Resource("fleetline.dev", "v1alpha1", "servingfleets", "ServingFleet")
FLEETS_PER_NAMESPACE = 20
GPUS_PER_NODE = 8
SPARE = 1.02  # a node whose lease was late takes no pods for a while
OPERATOR_AGENT = "fleetline"
# Decisions change their reason once the view is `FIRST_TURNS` old, and statuses say so two minutes
# later. So the fleets rest when they are older and none has changed for a while; the bar on writes
# is about the time after.
QUIET_S = 240.0
SETTLE_S = 1500.0
SCRAPE_S = 30.0
RENEWAL_S = 25.0  # of nodes' leases, which last 40 s: thousands are renewed by one process
ROUND_BAR_S, MEMORY_BAR_MIB, QUERIES_BAR, WRITES_BAR = 1.0, 200.0, 12.0, 0.0


def main() -> int:
    """Print the numbers; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("--backend", default="memory")
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--hold", type=float, default=600.0, help="how long to measure, in seconds")
    parser.add_argument("--settle", type=float, default=SETTLE_S, help="at most before, in seconds")
    parser.add_argument("--period", type=float, default=15.0, help="of the operator, in seconds")
    parser.add_argument("--scrape", type=float, default=SCRAPE_S, help="interval, in seconds")
    gc.set_threshold(100_000, 50, 50)  # millions of objects of the simulated cluster live on
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up, as Ctrl-C does
    return asyncio.run(_measure(parser.parse_args()))


async def _measure(options: argparse.Namespace) -> int:
    nodes = [NodeSpec(count=math.ceil(SPARE * options.pods / GPUS_PER_NODE))]
    began_s = time.monotonic()
    async with cluster(
        options.backend,
        nodes=nodes,
        operator=True,
        startup="1s",
        scrape_interval_s=options.scrape,
        scrapes_at_once=True,
        operator_arguments=["--period", f"{options.period:g}s"],
        simulation_options={"most_listeners": 0, "renewal_s": RENEWAL_S},
        report=_tell,
    ) as here:
        _tell(f"cluster with {nodes[0].count} nodes up after {time.monotonic() - began_s:.0f} s")
        async with ApiClient.from_kubeconfig(here.kubeconfig, user_agent="scale") as client:
            replicas = options.pods // options.fleets
            await _fill(client, fleets=options.fleets, replicas=replicas)
            await _until_ready(here, options.fleets * replicas, began_s)
            gc.collect()
            gc.freeze()
            await _until_quiet(client, FIRST_TURNS * options.period, options.settle)
            return await _hold(here, client, options.hold)


async def _fill(client: ApiClient, *, fleets: int, replicas: int) -> None:
    places = [(f"team-{number // FLEETS_PER_NAMESPACE}", f"f{number}") for number in range(fleets)]
    await _all(
        client.create(NAMESPACES, {"metadata": {"name": name}})
        for name in sorted({namespace for namespace, _ in places})
    )
    await _all(client.create(DEPLOYMENTS, _deployment(*place, replicas)) for place in places)
    await _all(client.create(FLEETS, _fleet(*place, replicas)) for place in places)


async def _all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    await asyncio.gather(*work)


def _deployment(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.21.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
        "args": ["--served-model-name", name],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "ports": [{"name": "http", "containerPort": 8000}],
    }
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _fleet(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": name},
            "model": {"name": "llama-3.1-8b"},
            "objectives": [{"metric": "TimeToFirstToken", "percentile": 95, "target": "500ms"}],
            "minReplicas": replicas,
            "maxReplicas": 2 * replicas,
        },
    }


async def _until_ready(here: Cluster, pods: int, began_s: float) -> None:
    told_s = 0.0
    while (serving := len(here.simulation.pool.replicas)) < pods:
        if time.monotonic() - told_s > 10:
            told_s = time.monotonic()
            _tell(f"{serving} of {pods} pods serve after {told_s - began_s:.0f} s")
        await asyncio.sleep(0.5)
    _tell(f"{pods} pods serve after {time.monotonic() - began_s:.0f} s")


async def _until_quiet(client: ApiClient, least_s: float, most_s: float) -> None:
    """Wait at least so long, and until no fleet has changed for a while."""
    began_s = changed_s = time.monotonic()

    def note(before: object, after: object) -> None:
        nonlocal changed_s
        if before is not None and after is not None:
            changed_s = time.monotonic()

    informer = Informer(client, FLEETS)
    informer.on_change(note)
    task = asyncio.create_task(informer.run())
    quiet_s = changed_s + QUIET_S
    while (now_s := time.monotonic()) < min(began_s + most_s, max(quiet_s, began_s + least_s)):
        await asyncio.sleep(min(1.0, most_s))
        quiet_s = changed_s + QUIET_S
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    _tell(f"settled for {now_s - began_s:.0f} s; no fleet changed for {now_s - changed_s:.0f} s")


async def _hold(here: Cluster, client: ApiClient, hold_s: float) -> int:
    writes: Counter[str] = Counter()
    informers = [Informer(client, resource) for resource in (FLEETS, DEPLOYMENTS)]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    for each in informers:
        await each.synced.wait()
        each.on_change(_counter_of_changes(writes, each.resource.plural))
    before = _requests(here)
    first = await read(here)
    memory_mib = [first.memory_mib]
    while time.monotonic() < first.at_s + hold_s:
        await asyncio.sleep(min(5.0, hold_s))
        last = await read(here)
        memory_mib.append(last.memory_mib)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    requests = _requests(here) - before
    for what, number in sorted((writes + requests).items()):
        print(f"writes at rest, {what}: {number}")
    return _report(first, last, memory_mib, max(writes.total(), requests.total()))


def _counter_of_changes(writes: Counter[str], plural: str) -> Listener:
    def count(before: object, after: object) -> None:
        writes[f"changes of {plural}"] += before is not None and after is not None

    return count


def _requests(here: Cluster) -> Counter[str]:
    """Count the operator's writes that the in-memory API saw, also those that changed nothing."""
    if here.api.memory is None:
        return Counter()
    counts: Counter[str] = Counter()
    for kind, number in here.api.memory.request_counts.by_kind.items():
        if kind.user_agent.startswith(OPERATOR_AGENT) and kind.verb in WRITES:
            counts[f"{kind.verb} {kind.resource}"] += number
    return counts


def _report(first: Reading, last: Reading, memory_mib: list[float], writes: int) -> int:
    seconds = last.at_s - first.at_s
    turns = between(first, last, "fleetline_turn_duration_seconds_count")
    rounds = between(first, last, "fleetline_round_duration_seconds_count")
    busy = (last.cpu_s - first.cpu_s) / seconds
    print(f"held {seconds:.0f} s: {rounds:.0f} rounds, {turns:.0f} turns, {busy:.2f} of one core")
    for reason, failures in sorted(last.metrics.get("fleetline_failures_total", {}).items()):
        print(f"failures, {' '.join(reason)}: {failures:.0f}")
    for share, what in ((0.5, "median"), (0.99, "p99")):
        turn_s = percentile(first, last, "fleetline_turn_duration_seconds", share)
        round_s = percentile(first, last, "fleetline_round_duration_seconds", share)
        asked_s = percentile(first, last, "fleetline_observation_duration_seconds", share)
        print(
            f"{what}, at most: turn of one fleet {1e3 * turn_s:g} ms, round over all fleets "
            f"{round_s:g} s, answers of Prometheus {asked_s:g} s"
        )
    print(f"resident memory, median: {statistics.median(memory_mib):.0f} MiB")
    queries = max(last.metrics["fleetline_prometheus_queries_per_round"].values())
    held = [
        _show("round over all fleets, p99, at most", round_s, ROUND_BAR_S, "s"),
        _show("resident memory, most", max(memory_mib), MEMORY_BAR_MIB, "MiB"),
        _show("queries to Prometheus per round", queries, QUERIES_BAR, ""),
        _show("writes at rest", writes, WRITES_BAR, ""),
    ]
    return 0 if turns and all(held) else 1


def _show(what: str, value: float, bar: float, unit: str) -> bool:
    held = value <= bar
    verdict = "ok" if held else "MISSED"
    print(f"{what}: {value:g} {unit} (bar: {bar:g} {unit}) {verdict}".replace("  ", " "))
    return held


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
