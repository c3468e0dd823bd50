"""
Published autoscaling algorithms, each a pure module: parameters, a step function, its cadence.

Defaults are the published ones. Where a user must set a threshold, the default knows the ceiling
of a replica, which flatters the peer.
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetline.replay.baselines import (
    aibrix,
    dynamo,
    hpa,
    keda,
    kpa,
    kubeai,
    llmd_keda,
    ray_serve,
    skyserve,
    static,
    wva_queue,
    wva_v1,
    wva_v2,
)
from fleetline.replay.baselines.baseline import Baseline

BASELINES: Final[Mapping[str, Baseline[Any, Any]]] = {
    one.name: one
    for one in (
        static.BASELINE,
        hpa.IN_FLIGHT,
        hpa.WAITING,
        hpa.KV_CACHE,
        keda.BASELINE,
        kpa.BASELINE,
        aibrix.APA,
        aibrix.KPA,
        ray_serve.BASELINE,
        skyserve.BASELINE,
        kubeai.BASELINE,
        wva_v1.BASELINE,
        wva_v2.BASELINE,
        wva_queue.BASELINE,
        dynamo.BASELINE,
        llmd_keda.BASELINE,
    )
}
"""Every peer by its name on the command line."""
