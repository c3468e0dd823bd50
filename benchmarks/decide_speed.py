"""
How long one fleet takes to decide, and a thousand in a round: median and p99 next to the bars.

Reading the cluster and Prometheus is not in it: turns run over ports that answer at once.
"""

import asyncio
import statistics
import time

from fleetline.control.memory import Memory
from fleetline.control.turn import take_turn
from tests.control.fakes import FakeCluster, a_fleet, a_target, seen

FLEETS = 1000
ROUNDS = 20
PERIOD_S = 15.0
BAR_MEDIAN_MS = 1.0
BAR_ROUND_S = 1.0


async def main() -> None:
    """Take rounds over many fleets with rates that differ and move."""
    clusters = [FakeCluster(a_target(2 + index % 18)) for index in range(FLEETS)]
    memories = [Memory() for _ in range(FLEETS)]
    turns_s, rounds_s = [], []
    for number in range(ROUNDS):
        began_s = time.perf_counter()
        for index, cluster in enumerate(clusters):
            rate_per_s = 20.0 + 10.0 * (index % 13) + 3.0 * ((number * 7 + index) % 5)
            view = seen(rate_per_s, replicas=20)
            fleet = a_fleet(name=f"fleet-{index}")
            start_s = time.perf_counter()
            turn = await take_turn(
                fleet, memories[index], cluster, view, now_s=number * PERIOD_S, period_s=PERIOD_S
            )
            turns_s.append(time.perf_counter() - start_s)
            memories[index] = turn.memory
        rounds_s.append(time.perf_counter() - began_s)
    median_ms = 1e3 * statistics.median(turns_s)
    p99_ms = 1e3 * statistics.quantiles(turns_s, n=100)[-1]
    print(f"one decision: median {median_ms:.2f} ms (bar {BAR_MEDIAN_MS:g}), p99 {p99_ms:.2f} ms")
    print(f"{FLEETS} decisions: {statistics.median(rounds_s):.2f} s (bar {BAR_ROUND_S:g})")


if __name__ == "__main__":
    asyncio.run(main())
