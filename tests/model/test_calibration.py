"""
Calibration: what is learned, what is refused, and how it survives.

The engine of the tests is the model itself with other factors: what it shows has to lead back.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fleetline.errors import ModelError
from fleetline.model.calibration import (
    CalibrationState,
    Sample,
    apply,
    from_numbers,
    prior,
    update,
)
from fleetline.model.operating_point import operate
from fleetline.model.replica import Calibration, Replica
from tests.model.deployments import CHAT, replica

H100 = replica()
SLOWER = replace(H100, calibration=Calibration(step=1.3, sequence=1.5, prefill=1.2))


def sample(engine: Replica, rate_per_s: float, at_s: float) -> Sample:
    """What a window of that engine shows."""
    point = operate(engine, CHAT, rate_per_s)
    first_s, step_s = point.time_to_first_token_s, point.inter_token_latency_s
    return Sample(
        at_s=at_s,
        arrival_rate_per_s=rate_per_s,
        running_requests=point.concurrency - rate_per_s * first_s,
        time_to_first_token_s=first_s,
        inter_token_latency_s=step_s,
        end_to_end_s=point.residence_time_s,
        requests=200.0,
    )


def taught(engine: Replica, rates: list[float]) -> CalibrationState:
    state = prior(H100)
    for turn, rate in enumerate(rates):
        state = update(state, sample(engine, rate, 60.0 * turn), H100, CHAT)
    return state


def test_a_few_windows_at_low_load_foresee_high_load() -> None:
    state = taught(SLOWER, [2.0, 5.0, 8.0, 10.0])

    foreseen = operate(apply(H100, state), CHAT, 14.0)

    truth = operate(SLOWER, CHAT, 14.0)
    assert foreseen.time_per_output_token_s == pytest.approx(
        truth.time_per_output_token_s, rel=0.05
    )
    assert operate(H100, CHAT, 14.0).time_per_output_token_s < (0.8 * truth.time_per_output_token_s)


def test_each_window_makes_the_factors_surer() -> None:
    states = [taught(SLOWER, [4.0] * count) for count in (0, 1, 5, 20)]

    spreads = [state.uncertainty["step"] for state in states]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < 0.5 * spreads[0]


def test_one_wild_window_moves_the_factors_a_bounded_amount() -> None:
    state = taught(SLOWER, [4.0, 6.0, 8.0])
    wild = replace(sample(SLOWER, 6.0, 300.0), inter_token_latency_s=5.0, end_to_end_s=None)

    after = update(state, wild, H100, CHAT)

    assert after.factors["step"] == pytest.approx(state.factors["step"], rel=0.25)


def test_lasting_contradiction_is_noticed_as_drift() -> None:
    state = taught(SLOWER, [4.0, 6.0, 8.0, 4.0, 6.0])
    assert not state.has_drifted

    broken = replace(SLOWER, calibration=Calibration(step=4.0, sequence=1.5, prefill=3.0))
    for turn in range(2):
        state = update(state, sample(broken, 3.0, 600.0 + 60 * turn), H100, CHAT)

    assert state.has_drifted


@pytest.mark.parametrize(
    ("change", "because"),
    [
        pytest.param({"requests": 5.0}, "window must hold >= 20 requests", id="a thin window"),
        pytest.param(
            {"youngest_replica_age_s": 30.0}, "replicas must be >= 120 s old", id="a young replica"
        ),
        pytest.param(
            {"running_requests": 60.0}, "window must be steady", id="a batch that still fills"
        ),
        pytest.param(
            {"time_to_first_token_s": None, "inter_token_latency_s": None},
            "sample must hold a latency",
            id="nothing measured",
        ),
    ],
)
def test_a_window_that_teaches_nothing_is_refused_with_its_reason(
    change: dict[str, Any], because: str
) -> None:
    state = prior(H100)

    after = update(state, replace(sample(SLOWER, 4.0, 0.0), **change), H100, CHAT)

    assert after.refused_because.startswith(because)
    assert after.factors == state.factors


def test_factors_stay_within_their_bounds() -> None:
    absurd = replace(
        sample(SLOWER, 4.0, 0.0),
        inter_token_latency_s=1e4,
        time_to_first_token_s=1e5,
        end_to_end_s=None,
    )
    state = prior(H100)

    for _ in range(50):
        state = update(state, absurd, H100, CHAT)

    assert all(0.1 - 1e-9 <= factor <= 10 + 1e-9 for factor in state.factors.values())
    assert all(math.isfinite(value) for value in state.covariance)


def test_a_state_survives_a_restart() -> None:
    state = taught(SLOWER, [4.0, 8.0])

    restored = from_numbers(state.to_numbers())

    assert restored.log_factors == pytest.approx(state.log_factors, abs=1e-5)
    assert np.allclose(restored.covariance, state.covariance, atol=1e-6)
    assert restored.shape == state.shape


def test_numbers_that_are_no_state_are_refused() -> None:
    with pytest.raises(ModelError, match="calibration must be numbers"):
        from_numbers({"shape": "x"})


def test_another_shape_starts_from_the_prior_again() -> None:
    state = taught(SLOWER, [4.0, 8.0])
    other = replica("llama-3.1-8b", "L40S")

    started = update(state, replace(sample(SLOWER, 4.0, 0.0), requests=1.0), other, CHAT)

    assert started.factors == prior(other).factors
    assert apply(other, state) == other
