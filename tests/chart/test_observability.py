"""Alerts and dashboard: correct PromQL, on metrics that exist, each alert with a runbook."""

import ast
import json
import re
import subprocess

import promql_parser
import pytest
import yaml

from fleetline.adapters.metrics import OwnMetrics
from sim_cluster import tools
from tests.chart import rendering as chart

ALERTS = [
    alert
    for group in yaml.safe_load((chart.CHART / "files" / "alerts.yaml").read_text("utf-8"))[
        "groups"
    ]
    for alert in group["rules"]
]
DASHBOARD = json.loads((chart.CHART / "files" / "dashboard.json").read_text("utf-8"))
REASONS = chart.ROOT / "operator" / "fleetline" / "policy" / "decision.py"


EXPRESSIONS = [
    *(pytest.param(alert["expr"], id=alert["alert"]) for alert in ALERTS),
    *(
        pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    ),
]


def strings(path):
    tree = ast.parse(path.read_text("utf-8"))
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {value for value in constants if isinstance(value, str)}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_is_promql(expression):
    assert promql_parser.parse(expression)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_is_one_that_the_operator_has(expression):
    declared = {metric.name for metric in OwnMetrics().registry.collect()}
    used = set(re.findall(r"fleetline_[a-z_]+", expression))
    stems = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in used}

    assert stems <= declared


@pytest.mark.parametrize("alert", [pytest.param(alert, id=alert["alert"]) for alert in ALERTS])
def test_every_alert_waits_and_says_what_to_do(alert):
    runbooks = (chart.CHART / "RUNBOOKS.md").read_text("utf-8")

    assert alert["annotations"]["runbook"] == f"RUNBOOKS.md#{alert['alert'].lower()}"
    assert f"\n## {alert['alert']}\n" in runbooks
    assert alert["labels"]["severity"] in {"warning", "critical"}
    assert alert["for"]
    assert {"summary", "description"} < alert["annotations"].keys()


def test_every_runbook_belongs_to_an_alert():
    headings = re.findall(r"^## (\w+)$", (chart.CHART / "RUNBOOKS.md").read_text(), re.MULTILINE)

    assert headings == [alert["alert"] for alert in ALERTS]


def test_alerts_name_reasons_that_decisions_have():
    named = {
        reason
        for alert in ALERTS
        for choice in re.findall(r'reason=~?"([^"]+)"', alert["expr"])
        for reason in choice.split("|")
    }

    assert named <= strings(REASONS)


def test_every_panel_says_what_it_shows():
    shown = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

    assert len(shown) >= 6
    assert all(panel["description"] and panel["targets"] for panel in shown)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.fixture(scope="session")
def promtool():
    try:
        return str(tools.promtool())
    except tools.ToolError as error:
        pytest.skip(str(error))


def test_prometheus_accepts_the_alerts(promtool):
    done = subprocess.run(
        [promtool, "check", "rules", str(chart.CHART / "files" / "alerts.yaml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


FLEET = 'namespace="demo", fleet="chat"'
SITUATIONS = [
    pytest.param({}, {"FleetlineDown"}, id="the operator is gone"),
    pytest.param({"turn_duration_seconds_count": "0+1x60"}, set(), id="no fleets"),
    pytest.param(
        {"turns_total": ("Demand", "0+4x60"), "utilization_ratio": "0.7+0x60"},
        set(),
        id="all is well",
    ),
    pytest.param({"turns_total": ("Demand", "9+0x60")}, {"FleetlineTurnsStopped"}, id="stuck"),
    pytest.param(
        {"turns_total": ("MetricsUnavailable", "0+4x60"), "unknown_turns_total": "0+4x60"},
        {"FleetlineMetricsUnavailable"},
        id="Prometheus has no series of the fleet",
    ),
    pytest.param(
        {"turns_total": ("Demand", "0+4x60"), "incomplete_turns_total": "0+4x60"},
        {"FleetlineViewIncomplete"},
        id="an exporter hangs",
    ),
    pytest.param(
        {"turns_total": ("Demand", "0+4x60"), "utilization_ratio": "1.1+0x60"},
        {"FleetlineAboveCeiling"},
        id="more than the ceiling",
    ),
    pytest.param(
        {
            "turns_total": ("Demand", "0+4x60"),
            "current_replicas": "4+0x60",
            "ready_replicas": "3+0x60",
        },
        {"FleetlineReplicasMissing"},
        id="a replica that never comes",
    ),
    pytest.param(
        {"turns_total": ("TooManyReplicas", "0+4x60")}, {"FleetlineAtMaximum"}, id="at the maximum"
    ),
    pytest.param(
        {"turns_total": ("ObjectivesUnattainable", "0+4x60")},
        {"FleetlineObjectivesUnattainable"},
        id="an impossible objective",
    ),
    pytest.param(
        {"turns_total": ("ConflictingAutoscaler", "0+4x60")},
        {"FleetlineNotScaling"},
        id="an HPA on the same target",
    ),
]


@pytest.mark.parametrize(("series", "firing"), SITUATIONS)
def test_in_each_situation_the_right_alert_fires_alone(promtool, tmp_path, series, firing):
    given = [
        {"series": name, "values": values}
        for key, value in {"turn_duration_seconds_count": "0+1x60", **series}.items()
        for name, values in [_series(key, value)]
        if series
    ]
    (tmp_path / "alerts.yaml").write_text((chart.CHART / "files" / "alerts.yaml").read_text())
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(_unit_test(given, firing)))

    done = subprocess.run(
        [promtool, "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def _series(key, value):
    if key == "turns_total":
        reason, values = value
        return f'fleetline_turns_total{{{FLEET}, reason="{reason}"}}', values
    if key == "incomplete_turns_total":
        return f'fleetline_incomplete_turns_total{{{FLEET}, gap="Frozen"}}', value
    if key == "turn_duration_seconds_count":
        return "fleetline_turn_duration_seconds_count", value
    return f"fleetline_{key}{{{FLEET}}}", value


def _unit_test(series, firing):
    """A promtool test after 40 minutes: which alerts fire, compared through the ALERTS series."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(firing)]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    check = {"expr": expression, "eval_time": "40m", "exp_samples": samples}
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [check]}
    return {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": [test]}
