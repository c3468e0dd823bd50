"""Counters of a real engine under rising load foresee where it stops keeping its objectives."""

import importlib.util
import sys
from pathlib import Path

from fleetline.model.calibration import apply
from fleetline.model.ceiling import ceiling
from fleetline.model.operating_point import operate

ROOT = Path(__file__).parents[2]
SCRAPES = ROOT / "tests" / "data" / "model" / "scrapes.csv"
"""Recorded at 0.5, 1, 2 and 3 requests/s; at 4 the p95 of TTFT was 2.4 s, at 3 it was 0.25 s."""

spec = importlib.util.spec_from_file_location(
    "live_calibration", ROOT / "benchmarks" / "live_calibration.py"
)
assert spec is not None
assert spec.loader is not None
live = importlib.util.module_from_spec(spec)
sys.modules["live_calibration"] = live
spec.loader.exec_module(live)


def test_rates_up_to_three_foresee_a_ceiling_between_three_and_four() -> None:
    state, workload = live.learn(live.read(SCRAPES))

    found = ceiling(apply(live.REPLICA, state), workload, live.OBJECTIVES)

    assert 3.0 < found.rate_per_s < 4.0


def test_the_residence_time_is_foreseen_at_each_rate() -> None:
    rows = live.read(SCRAPES)
    learned = apply(live.REPLICA, live.learn(rows)[0])
    seen = [
        (live.sample_of(chosen, 0.0)[0], live.lengths_at(rows, chosen))
        for _, chosen in live.by_rate(rows)
    ]

    ratios = [
        operate(learned, workload, sample.arrival_rate_per_s).residence_time_s / sample.end_to_end_s
        for sample, workload in seen
    ]

    assert len(ratios) == 4
    assert all(0.9 < ratio < 1.1 for ratio in ratios)
