"""Who goes first at scale-down: one reason after the other."""

import pytest

from sim_cluster.controllers.victims import DELETION_COST, choose

NOW_S = 1_800_000_000.0


def pod(name, *, node="n", phase="Running", ready_for_s=60.0, cost=None, restarts=0, age_s=60.0):
    def stamp(ago_s):
        from datetime import UTC, datetime

        return datetime.fromtimestamp(NOW_S - ago_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    status = "False" if ready_for_s is None else "True"
    condition = {"type": "Ready", "status": status, "lastTransitionTime": stamp(ready_for_s or 0)}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": stamp(age_s),
            "annotations": {} if cost is None else {DELETION_COST: str(cost)},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [{"restartCount": restarts}],
        },
    }


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        pytest.param(
            {"node": None, "phase": "Pending", "ready_for_s": None}, {}, id="not assigned"
        ),
        pytest.param(
            {"phase": "Pending", "ready_for_s": None}, {"ready_for_s": None}, id="pending"
        ),
        pytest.param({"ready_for_s": None}, {}, id="not ready"),
        pytest.param({"cost": -5}, {}, id="cheaper to delete"),
        pytest.param({"cost": 1}, {"cost": 10, "ready_for_s": 1.0}, id="cost before readiness"),
        pytest.param({"ready_for_s": 10.0}, {"ready_for_s": 1000.0}, id="ready for a shorter time"),
        pytest.param({"restarts": 3}, {}, id="more restarts"),
        pytest.param({"age_s": 70.0}, {"age_s": 7000.0}, id="younger"),
    ],
)
def test_the_less_useful_pod_goes_first(goes, stays):
    pods = [pod("z-stays", **stays), pod("z-stays-too", **stays), pod("zz-goes", **goes)]

    chosen = choose(pods, 1, relatives=[], now_s=NOW_S)

    assert [each["metadata"]["name"] for each in chosen] == ["zz-goes"]


def test_a_crowded_node_loses_a_pod_first():
    pods = [pod("alone", node="a"), pod("crowded", node="b"), pod("crowded-too", node="b")]

    chosen = choose(pods, 1, relatives=pods, now_s=NOW_S)

    assert chosen[0]["metadata"]["name"].startswith("crowded")


def test_ages_of_the_same_magnitude_count_as_equal():
    pods = [pod("b", ready_for_s=70.0, age_s=70.0), pod("a", ready_for_s=75.0, age_s=75.0)]

    chosen = choose(pods, 1, relatives=[], now_s=NOW_S)

    assert chosen[0]["metadata"]["name"] == "a"
