"""The demo's bookkeeping: what it counts, how it judges, what it shows. The run itself is slow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fleetline.entrypoints.demo.gauges import gauges_in
from fleetline.entrypoints.demo.page import page
from fleetline.entrypoints.demo.recorder import Moment, Recorder, read_decision
from fleetline.entrypoints.demo.scenario import Scenario
from fleetline.entrypoints.demo.screen import sparkline
from fleetline.entrypoints.demo.summary import Summary, summarize
from fleetline.entrypoints.demo.windows import holds, in_window
from fleetline.entrypoints.demo.writes import changes, patches_in
from sim_cluster.traffic.truth import RequestRecord

CONTRACT = {
    *("windows_met", "scale_ups", "scale_downs", "max_replicas", "min_replicas"),
    *("writes_at_rest", "gpu_hours", "static_peak_gpu_hours"),
}
KEPT = Summary(
    windows_met=11 / 12,
    windows=12,
    scale_ups=3,
    scale_downs=2,
    max_replicas=6,
    min_replicas=1,
    writes_at_rest=0,
    gpu_hours=0.1,
    static_peak_gpu_hours=0.2,
    requests=1000,
)


def moment(t_s: float, replicas: int, pods: int) -> Moment:
    return Moment(
        t_s=t_s,
        arrival_rate_per_s=5.0,
        waiting_requests=0,
        running_requests=10,
        first_token_p95_s=0.2,
        output_token_p95_s=None,
        pods=pods,
        ready_replicas=replicas,
        current_replicas=replicas,
        desired_replicas=replicas,
        ceiling_per_s=3.0,
        expected_rate_per_s=6.0,
        utilization=0.8,
        loop_gain=0.3,
        reason="Demand",
        because="5 req/s",
    )


def recorded() -> Recorder:
    recorder = Recorder()
    for t_s, replicas, pods in ((0, 1, 1), (10, 3, 3), (20, 3, 3), (30, 2, 3), (40, 2, 2)):
        recorder.take(moment(t_s, replicas, pods))
    return recorder


def request(arrival_s: float, first_token_s: float) -> RequestRecord:
    return RequestRecord(arrival_s, 100, 1, first_token_s=first_token_s, finished_s=first_token_s)


def test_changes_of_the_target_are_counted_and_told() -> None:
    recorder = recorded()

    assert (recorder.scale_ups, recorder.scale_downs) == (1, 1)
    assert [event.text for event in recorder.events] == [
        "up  1 -> 3 (Demand): 5 req/s",
        "down  3 -> 2 (Demand): 5 req/s",
    ]


def test_gpu_hours_run_to_the_end_of_the_drain() -> None:
    assert recorded().gpu_hours() == pytest.approx((10 + 30 + 30 + 30) / 3600)


def test_what_was_used_before_the_day_does_not_count() -> None:
    early = Recorder()
    for t_s in (-20, -10, 0, 10):
        early.take(moment(t_s, 2, 2))

    assert early.gpu_hours() == pytest.approx(2 * 10 / 3600)


def test_the_summary_has_every_key_that_scripts_rely_on(tmp_path: Path) -> None:
    summary = summarize(
        recorded(),
        windows_met=[True] * 11 + [False],
        writes_at_rest=0,
        static_replicas=6,
        requests=100,
    )
    summary.write(tmp_path / "summary.json")

    assert set(json.loads((tmp_path / "summary.json").read_text())) >= CONTRACT


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (replace(KEPT, windows_met=10 / 12), "2 of 12 windows missed"),
        (replace(KEPT, gpu_hours=0.2), "not below the static fleet"),
        (replace(KEPT, writes_at_rest=1), "1 PATCHes at rest"),
        (replace(KEPT, scale_downs=0), "not scaled both ways"),
    ],
)
def test_what_was_not_kept_is_said(broken: Summary, words: str) -> None:
    assert KEPT.shortfalls == []
    assert words in " ".join(broken.shortfalls)


def test_a_window_is_judged_by_the_percentile_of_its_own_requests() -> None:
    records = [request(t_s, t_s + 0.1) for t_s in range(100)]
    late = [request(105.0, 107.0)]

    inside = in_window([*records, *late], 0.0, 0, 100.0)

    assert holds(inside, "TimeToFirstToken", 95, 0.5)
    assert not holds(late, "TimeToFirstToken", 95, 0.5)


def test_an_unfinished_request_misses() -> None:
    assert not holds([RequestRecord(0.0, 100, 10)], "TimeToFirstToken", 95, 0.5)


def test_unknown_gauges_are_none_and_no_zero() -> None:
    of_chat = '{fleet="chat",namespace="default"}'
    lines = [
        f"fleetline_utilization_ratio{of_chat} 0.83",
        f"fleetline_loop_gain_ratio{of_chat} NaN",
        'fleetline_desired_replicas{fleet="other",namespace="default"} 4',
    ]

    assert gauges_in("\n".join(lines)) == {
        "utilization": 0.83,
        "loop_gain": None,
        "desired_replicas": None,
        "ceiling_per_s": None,
        "expected_rate_per_s": None,
    }


def test_the_decision_is_read_in_words() -> None:
    fleet = {"status": {"decision": {"reason": "Demand", "because": "5 req/s", "steps": []}}}

    assert read_decision(fleet) == {"reason": "Demand", "because": "5 req/s"}
    assert read_decision({}) == {"reason": "", "because": ""}


def test_what_changed_at_rest_is_named() -> None:
    before = {"readyReplicas": 2, "conditions": [{"type": "Ready", "status": "True"}]}
    after = {"readyReplicas": 1, "conditions": [{"type": "Ready", "status": "False"}], "cost": {}}

    assert changes(before, before) == ""
    assert changes(before, after) == (
        "conditions[Ready].status True -> False, readyReplicas 2 -> 1"
    )


def counted(resource: str, subresource: str, verb: str, count: int) -> str:
    labels = f'code="200",resource="{resource}",subresource="{subresource}",verb="{verb}"'
    return f"apiserver_request_total{{{labels}}} {count}"


def test_patches_of_a_real_api_server_are_read_from_its_metrics() -> None:
    lines = [
        counted("servingfleets", "status", "PATCH", 3),
        counted("deployments", "scale", "PATCH", 2),
        counted("deployments", "status", "PATCH", 9),
        counted("servingfleets", "", "LIST", 7),
        counted("servingfleets", "", "APPLY", 1),
    ]

    assert patches_in("\n".join(lines)) == {
        "servingfleets/status": 3,
        "deployments/scale": 2,
        "servingfleets": 1,
    }


def test_a_sparkline_leaves_a_gap_for_what_is_not_known() -> None:
    assert sparkline([0.0, None, 4.0]) == "▁ █"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_page_is_self_contained() -> None:
    html = page(Scenario(), recorded(), KEPT)

    assert "GPU-hours" in html
    assert 'src="http' not in html
