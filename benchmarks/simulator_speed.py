"""
How fast the simulator is, number beside bar, and beside a published simulator.

    python benchmarks/simulator_speed.py

Bars: 300,000 requests/s on one core for 20 replicas; a day of 4 million requests with a decision
every 15 s in 30 s and 2 GiB. The first run compiles for some seconds, which is not counted.
"""

import hashlib
import importlib.util
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from fleetline.model.step_time import StepTime
from sim_cluster.serving import shapes
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.lengths import Lengths, Quantiles
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.startup import StartupTime

H100_8B = StepTime(
    fixed_s=1.2e-3,
    weights_read_s=5.5e-3,
    kv_read_s_per_token=4.5e-8,
    token_compute_s=2.2e-5,
    sequence_s=3.2e-5,
    prefill_token_s=2.4e-5,
    prefill_pair_s=4e-10,
    request_s=3e-3,
)
"""About an 8-billion model on an H100: 36 us a layer, 16 GB at 0.87 x 3.35 TB/s, and so on."""

LIMITS = EngineLimits(max_sequences=256, step_token_budget=8192, kv_capacity_tokens=400_000.0)
CHAT = Lengths(
    prompt=Quantiles.of([10, 50, 90, 99], [288, 909, 3820, 6641]),
    output=Quantiles.of([10, 50, 90, 99], [4, 31, 300, 680]),
)
"""Azure's conversation service of May 2024 (percentiles read off its published plot)."""

REPLICAS = 20
PERIOD_S = 15.0
BAR_PER_S = 300_000
BAR_DAY_S = 30.0
BAR_MEMORY_GIB = 2.0
KIB_PER_GIB = 2**20


def main() -> int:
    """Print every number beside its bar; fail if one misses it."""
    _simulate(shapes.steady(rate_per_s=10, duration_s=10).draw(CHAT), 1)  # compile
    met = [_throughput(), _day(), _memory()]
    _beside("ciw", _ciw)
    _beside("vidur", _vidur)
    return 0 if all(met) else 1


def _throughput() -> bool:
    arrivals = shapes.steady(rate_per_s=160, duration_s=6250).draw(CHAT, dispersion=1.4)
    best_s = min(_simulate(arrivals, REPLICAS)[0] for _ in range(3))
    _, fleet = _simulate(arrivals, REPLICAS)
    rate = len(arrivals) / best_s
    tokens = int(arrivals.output_tokens.sum())
    print(
        f"throughput: {rate:,.0f} requests/s on one core, {REPLICAS} replicas "
        f"({len(arrivals):,} requests, {tokens:,} output tokens in {best_s:.2f} s), "
        f"bar >= {BAR_PER_S:,}"
    )
    seen = fleet.results()
    kept = np.round(np.nan_to_num(np.stack((seen.ttft_s, seen.e2e_s))), 6)
    print(f"digest of its results: {hashlib.sha256(kept.tobytes()).hexdigest()[:16]}")
    return rate >= BAR_PER_S


def _simulate(arrivals: Arrivals, replicas: int) -> tuple[float, FleetSimulation]:
    fleet = FleetSimulation(arrivals, H100_8B, LIMITS, initial_replicas=replicas)
    begin_s = time.perf_counter()
    fleet.advance(np.inf)
    return time.perf_counter() - begin_s, fleet


def _day() -> bool:
    begin_s = time.perf_counter()
    day = shapes.diurnal(mean_per_s=4e6 / 86_400, peak_at_s=54_000.0)
    arrivals = day.draw(CHAT, dispersion=1.4, seed=1)
    fleet = FleetSimulation(
        arrivals, H100_8B, LIMITS, startup=StartupTime.spread(180.0, 2.0), initial_replicas=8
    )
    decisions = 0
    while fleet.now_s < 86_400:
        fleet.advance(fleet.now_s + PERIOD_S)
        seen = fleet.snapshot()
        fleet.scale(max(2, -(-int(seen.in_flight.sum()) // 12)))
        decisions += 1
    fleet.advance(np.inf)
    fleet.results()
    took_s = time.perf_counter() - begin_s
    print(
        f"a day: {len(arrivals):,} requests, {decisions:,} decisions, {len(fleet.lives)} replicas "
        f"in all: {took_s:.1f} s, bar <= {BAR_DAY_S:g} s"
    )
    return took_s <= BAR_DAY_S


def _memory() -> bool:
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_GIB
    print(f"memory: {gib:.2f} GiB at most, bar <= {BAR_MEMORY_GIB:g} GiB")
    return gib <= BAR_MEMORY_GIB


def _beside(name: str, run: Callable[[], tuple[int, float]]) -> None:
    """Print the speed of another simulator, or why there is none."""
    if importlib.util.find_spec(name) is None:
        print(f"{name}: not installed here (pip install {name})")
        return
    try:
        requests, took_s = run()
    except (ImportError, OSError, ValueError) as error:
        print(f"{name}: does not run here: {str(error).splitlines()[0]}")
        return
    rate = requests / took_s
    print(f"{name}: {rate:,.0f} requests/s ({requests:,} requests in {took_s:.1f} s)")


def _ciw() -> tuple[int, float]:
    """
    Run Ciw (Palmer et al. 2019) on the nearest network it can express.

    20 servers-of-16 for the replicas; no batch, no tokens: it does less work for a request.
    """
    import ciw  # noqa: PLC0415 - an optional comparison

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(160.0)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[REPLICAS * 16],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    begin_s = time.perf_counter()
    simulation.simulate_until_max_time(100.0)
    took_s = time.perf_counter() - begin_s
    return len(simulation.get_all_records()), took_s


def _vidur() -> tuple[int, float]:
    """
    Run Vidur (Agrawal et al. 2024), an iteration-level simulator of LLM serving.

    Version 0.0.26 fetches its profiles from Hugging Face: it needs the internet.
    """
    from vidur.config import SimulationConfig  # noqa: PLC0415 - an optional comparison
    from vidur.simulator import Simulator  # noqa: PLC0415

    sys.argv = [sys.argv[0], "--cluster_config_num_replicas", str(REPLICAS)]
    config = SimulationConfig.create_from_cli_args()
    simulation = Simulator(config)
    begin_s = time.perf_counter()
    simulation.run()
    return config.request_generator_config.num_requests, time.perf_counter() - begin_s


if __name__ == "__main__":
    raise SystemExit(main())
