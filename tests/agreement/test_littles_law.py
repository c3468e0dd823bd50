"""
Little's law, L = lambda W, at every boundary of every run.

The left side is accumulated from counts inside the event loop, the right side summed from the
moments that requests record; the two share no arithmetic. Boundaries: waiting, prefill, decode,
and all of them.
"""

import numpy as np
import pytest

from fleetline.model.step_time import StepTime
from sim_cluster.serving import shapes
from sim_cluster.serving.fleet import FleetSimulation, Router
from sim_cluster.serving.lengths import Lengths, Quantiles
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.startup import StartupTime

STEP_TIME = StepTime(
    fixed_s=1.2e-3,
    weights_read_s=5.5e-3,
    kv_read_s_per_token=4.9e-8,
    token_compute_s=2e-5,
    sequence_s=3e-5,
    prefill_token_s=2.6e-5,
    prefill_pair_s=1e-10,
    request_s=3e-3,
)
LENGTHS = Lengths(
    prompt=Quantiles.of([10, 50, 90, 99], [50, 500, 2000, 5000]),
    output=Quantiles.of([10, 50, 90, 99], [10, 100, 400, 900]),
)

SITUATIONS = [
    pytest.param(shapes.steady(rate_per_s=20, duration_s=600), 4, 400_000, 1.0, id="steady"),
    pytest.param(shapes.steady(rate_per_s=20, duration_s=600), 4, 400_000, 13.0, id="bursty"),
    pytest.param(shapes.steady(rate_per_s=30, duration_s=300), 2, 400_000, 1.0, id="overload"),
    pytest.param(shapes.steady(rate_per_s=12, duration_s=300), 3, 15_000, 1.0, id="preempting"),
    pytest.param(
        shapes.spike(rate_per_s=10, peak_per_s=60, at_s=100, length_s=60, duration_s=600),
        4,
        400_000,
        1.4,
        id="spike",
    ),
]


@pytest.mark.parametrize("router", list(Router))
@pytest.mark.parametrize(("shape", "replicas", "kv_tokens", "dispersion"), SITUATIONS)
def test_requests_in_each_phase_are_their_rate_times_the_time_they_stay(
    shape, replicas: int, kv_tokens: int, dispersion: float, router: Router
) -> None:
    arrivals = shape.draw(LENGTHS, dispersion=dispersion, seed=5)
    limits = EngineLimits(
        max_sequences=64, step_token_budget=2048, kv_capacity_tokens=float(kv_tokens)
    )
    fleet = FleetSimulation(arrivals, STEP_TIME, limits, router=router, initial_replicas=replicas)

    fleet.advance(np.inf)
    areas, seen = fleet.phase_areas(), fleet.results()

    served = ~np.isnan(seen.e2e_s)
    assert served.sum() == len(arrivals) - fleet.snapshot().rejected
    sums = (
        seen.waiting_s[served].sum(),
        (seen.ttft_s - seen.waiting_s)[served].sum(),
        (seen.e2e_s - seen.ttft_s)[served].sum(),
    )
    assert (areas.waiting_s, areas.prefill_s, areas.decode_s) == pytest.approx(sums, rel=1e-9)
    whole_s = areas.waiting_s + areas.prefill_s + areas.decode_s
    assert whole_s == pytest.approx(seen.e2e_s[served].sum(), rel=1e-9)


def test_the_law_survives_replicas_that_come_and_drain() -> None:
    arrivals = shapes.steady(rate_per_s=20, duration_s=900).draw(LENGTHS, seed=2)
    limits = EngineLimits(max_sequences=64, step_token_budget=2048, kv_capacity_tokens=400_000.0)
    fleet = FleetSimulation(
        arrivals, STEP_TIME, limits, startup=StartupTime.spread(60.0, 2.0), initial_replicas=3
    )

    for turn in range(60):
        fleet.advance(15.0 * (turn + 1))
        fleet.scale(2 + turn % 5)
    fleet.advance(np.inf)

    areas, seen = fleet.phase_areas(), fleet.results()
    whole_s = areas.waiting_s + areas.prefill_s + areas.decode_s
    assert whole_s == pytest.approx(seen.e2e_s.sum(), rel=1e-9)


def test_fifty_requests_a_second_that_stay_twenty_seconds_are_a_thousand_in_flight() -> None:
    # one token every 20 ms whatever the batch, 1,000 tokens: 20 s
    step_time = StepTime(
        fixed_s=0.02,
        weights_read_s=0.0,
        kv_read_s_per_token=0.0,
        token_compute_s=0.0,
        sequence_s=0.0,
        prefill_token_s=0.0,
    )
    arrivals = shapes.steady(rate_per_s=50, duration_s=200).draw(Lengths.fixed(1, 1000), seed=1)
    limits = EngineLimits(max_sequences=4096, kv_capacity_tokens=1e8)
    fleet = FleetSimulation(arrivals, step_time, limits)
    counts = []

    for moment_s in range(50, 200):
        fleet.advance(float(moment_s))
        counts.append(int(fleet.snapshot().in_flight[0]))

    assert np.mean(counts) == pytest.approx(1000, rel=0.03)
