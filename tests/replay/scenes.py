"""A small fleet for tests: 8B on an A100, ten minutes of Poisson traffic that doubles."""

import numpy as np

from fleetline.adapters.catalog import load_catalog
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.replay.drawing import draw_times_s
from fleetline.replay.scenario import Scenario
from fleetline.replay.traces import Trace
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.startup import StartupTime

OBJECTIVES = (
    Objective(metric=Metric.TIME_TO_FIRST_TOKEN, percentile=95, target_s=1.0),
    Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, percentile=95, target_s=0.05),
)


def replica() -> Replica:
    catalog = load_catalog()
    return Replica(
        architecture=catalog.architecture("llama-3.1-8b"),
        accelerator=catalog.accelerator("A100-SXM-80GB"),
    )


def scenario(
    rates_per_s: tuple[float, ...] = (8.0, 16.0),
    *,
    stretch_s: float = 600.0,
    startup_s: float = 60.0,
    initial_replicas: int = 2,
    seed: int = 3,
) -> Scenario:
    """Stretches of constant rate, prompts of 1,000 and answers of 200 tokens."""
    edges = np.linspace(0.0, stretch_s * len(rates_per_s), len(rates_per_s) + 1)
    times = draw_times_s(edges, np.array(rates_per_s), 1.0, np.random.default_rng(seed))
    return Scenario(
        trace=Trace(
            name="doubling",
            arrivals=Arrivals.of(times, 1000, 200),
            duration_s=float(edges[-1]),
        ),
        replica=replica(),
        objectives=OBJECTIVES,
        startup=StartupTime.fixed(startup_s),
        startup_s=startup_s,
        max_replicas=12,
        initial_replicas=initial_replicas,
        price_usd_per_hour=2.0,
    )
