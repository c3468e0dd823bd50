"""Whole runs in virtual time: peers, bounds, our own turn, and what the views of them show."""

import json
import math

import numpy as np
import pytest

from fleetline.errors import ManifestError
from fleetline.replay.answer import answer, parse_policies
from fleetline.replay.baselines import BASELINES
from fleetline.replay.baselines.hpa import HpaParameters, Signal
from fleetline.replay.bounds import coming_maximum, smoothed
from fleetline.replay.hindsight import best, between, meets_target
from fleetline.replay.html import page
from fleetline.replay.pilots import BaselinePilot
from fleetline.replay.pool import open_runs
from fleetline.replay.run import run
from fleetline.replay.scenario import site_of
from fleetline.replay.tasks import OURS, Outcome, Task, perform
from tests.replay.scenes import scenario


class Silent:
    """Listens to runs and says nothing."""

    def begin(self, count: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...


@pytest.mark.parametrize("name", BASELINES)
def test_every_peer_runs_at_its_defaults_within_the_bounds(name: str) -> None:
    scene = scenario(stretch_s=200.0)
    baseline = BASELINES[name]

    done = run(BaselinePilot(baseline, baseline.default(site_of(scene)), scene), scene)

    assert len(done.lives) >= 1
    assert 0.0 <= done.score.windows_met <= 1.0
    assert 0.0 < done.score.gpu_hours <= 12 * 2 * 400 / 3600


def test_our_policy_follows_demand_that_doubles() -> None:
    scene = scenario((6.0, 18.0), stretch_s=900.0)

    done = perform(Task(name=OURS, policy=OURS, parameters=None), scene)

    assert done.series is not None
    assert done.series.serving_replicas[-1] > done.series.serving_replicas[0]
    assert done.score.goodput > 0.8


def test_the_same_scenario_gives_the_same_score() -> None:
    first, again = (
        perform(Task(name=OURS, policy=OURS, parameters=None), scenario(stretch_s=300.0))
        for _ in range(2)
    )

    assert first.score == again.score


def test_an_answer_has_the_keys_that_scripts_rely_on() -> None:
    request = parse_policies("fleetline,static,hpa-inflight@best")
    scene = scenario(stretch_s=200.0)
    with open_runs(scene, Silent()) as runs:
        found = json.loads(json.dumps(answer(scene, request, runs).as_json(), allow_nan=False))

    assert set(found) == {"trace", "requests", "duration_s", "policies", "bounds"}
    assert [one["name"] for one in found["policies"]] == [
        "fleetline",
        "static",
        "hpa-inflight@best",
    ]
    keys = {"name", "parameters", "windows_met", "goodput", "gpu_hours", "replica_hours"}
    keys |= {"scale_actions", "worst_drain_s", "cost", "ttft_p95_s", "tpot_p95_s"}
    assert all(set(one) == keys for one in found["policies"])
    assert set(found["bounds"]["clairvoyant"]) == keys
    assert found["bounds"]["fluid"]["gpu_hours"] > 0


def test_the_clairvoyant_needs_no_more_than_the_static_peak() -> None:
    scene = scenario((4.0, 16.0, 4.0), stretch_s=600.0, initial_replicas=3)
    with open_runs(scene, Silent()) as runs:
        found = answer(scene, parse_policies("static"), runs)

    assert found.clairvoyant is not None
    assert meets_target(found.clairvoyant)
    assert found.clairvoyant.score.gpu_hours < found.policies[0].score.gpu_hours


def test_the_page_needs_no_network() -> None:
    scene = scenario(stretch_s=200.0)
    with open_runs(scene, Silent()) as runs:
        text = page([answer(scene, parse_policies("fleetline,kpa"), runs)])

    assert "Plotly" in text
    assert 'src="http' not in text
    assert "doubling" in text


def test_a_sweep_reports_every_setting() -> None:
    scene = scenario(stretch_s=200.0)
    with open_runs(scene, Silent()) as runs:
        found = answer(scene, parse_policies("hpa-waiting", sweeps=True), runs)

    assert len(found.as_json()["sweep"]) >= len(BASELINES["hpa-waiting"].tunings(found.site))


@pytest.mark.slow
def test_processes_find_what_one_process_finds() -> None:
    scene = scenario(stretch_s=200.0)
    request = parse_policies("fleetline,static,kpa")
    found = []
    for processes in (1, 2):
        with open_runs(scene, Silent(), processes=processes) as runs:
            found.append(answer(scene, request, runs).as_json())

    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nobody", "must be one of fleetline, static", id="unknown"),
        pytest.param("fleetline@best", "must be a peer", id="ours has nothing to tune"),
        pytest.param(" ", "must name at least one", id="none"),
    ],
)
def test_wrong_policies_are_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        parse_policies(text)


def test_all_names_every_policy_once() -> None:
    request = parse_policies("all,kpa,all@best")

    assert request.defaults == ("fleetline", *BASELINES)
    assert request.tuned == tuple(BASELINES)


def test_between_two_settings_lies_their_geometric_mean() -> None:
    low, high = (HpaParameters(signal=Signal.IN_FLIGHT, target=one) for one in (4.0, 9.0))

    assert between(low, high) == HpaParameters(signal=Signal.IN_FLIGHT, target=6.0)
    assert between(low, HpaParameters(signal=Signal.WAITING, target=9.0)) is None
    assert between(low, low) is None


def outcome(windows: float, hours: float) -> Outcome:
    scene = scenario(stretch_s=60.0)
    done = perform(Task(name="static", policy="static", parameters=STATIC, is_shown=False), scene)
    judged = type(done.score)(
        **{
            name: getattr(done.score, name)
            for name in done.score.__slots__
            if name not in {"windows_met", "gpu_hours"}
        },
        windows_met=windows,
        gpu_hours=hours,
    )
    return Outcome(task=done.task, score=judged)


STATIC = BASELINES["static"].default(site_of(scenario(stretch_s=60.0)))


def test_best_is_the_cheapest_that_met_the_target_else_the_most_windows() -> None:
    met = [outcome(1.0, 9.0), outcome(0.995, 7.0), outcome(0.98, 1.0)]
    missed = [outcome(0.9, 9.0), outcome(0.95, 20.0), outcome(0.95, 11.0)]

    assert best(met).score.gpu_hours == 7.0
    assert best(missed).score.gpu_hours == 11.0


def test_the_coming_maximum_looks_as_far_as_a_start_takes() -> None:
    assert coming_maximum(np.array([1, 1, 5, 1, 1]), 2).tolist() == [5, 5, 5, 1, 1]


def test_smoothing_keeps_a_constant() -> None:
    assert smoothed(np.full(10, 3.0), 4).tolist() == pytest.approx([3.0] * 10)
    assert math.isclose(smoothed(np.array([0.0, 0.0, 6.0, 0.0, 0.0]), 3)[1], 2.0)
