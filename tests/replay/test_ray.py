"""Sweeps on a Ray cluster: two worker processes on this machine, joined by address."""

import importlib.util

import pytest

from fleetline.replay.answer import answer, parse_policies
from fleetline.replay.pool import open_runs
from tests.replay.scenes import scenario
from tests.replay.test_run import Silent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra `ray` is absent"),
    pytest.mark.filterwarnings("ignore"),
]


def test_a_ray_cluster_of_two_workers_finds_what_one_process_finds() -> None:
    from ray.cluster_utils import Cluster

    scene = scenario(stretch_s=200.0)
    request = parse_policies("static,hpa-inflight@best")
    with open_runs(scene, Silent()) as runs:
        here = answer(scene, request, runs).as_json()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        with open_runs(scene, Silent(), ray_address=cluster.address) as runs:
            there = answer(scene, request, runs).as_json()
    finally:
        cluster.shutdown()

    assert there == here
