"""What the demo deploys and how its load swings: a day of two peaks, compressed into minutes."""

from dataclasses import dataclass, field
from typing import Any, Final

from fleetline.model.objective import Metric, Objective
from sim_cluster.nodes import NodeSpec
from sim_cluster.traffic.lengths import LogNormalLengths
from sim_cluster.traffic.shapes import CompressedDay, Sequence, Shape

NAMESPACE: Final = "default"
NAME: Final = "chat"
MODEL: Final = "llama-3.1-8b"
SLOTS: Final = 64
"""Slots of an engine: small, so that its latency bends within the demo's load. [requests]"""


NIGHT_PER_S: Final = 1.5


def day_of_two_peaks() -> Shape:
    """Return a morning's peak, a higher one in the evening, and a burst as that one falls."""
    morning = CompressedDay(trough_per_s=NIGHT_PER_S, peak_per_s=16.0, duration_s=62.5, peak_at=0.5)
    evening = CompressedDay(
        trough_per_s=NIGHT_PER_S,
        peak_per_s=40.0,
        duration_s=112.5,
        peak_at=0.58,
        burst_per_s=4.0,
        burst_at=0.8,
    )
    return Sequence((morning, evening))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that can be turned; latencies and start-up times run in real time."""

    nodes: NodeSpec = field(
        default_factory=lambda: NodeSpec(accelerator="L4", count=3, accelerators_per_node=8)
    )
    lengths: LogNormalLengths = field(
        default_factory=lambda: LogNormalLengths(
            mean_prompt_tokens=250, mean_output_tokens=80, variation=0.5, longest_tokens=1024
        )
    )
    day: Shape = field(default_factory=day_of_two_peaks)
    first_per_s: float = 0.8
    """Traffic begins softly: before the first requests have completed nobody knows their lengths.
    [1/s]"""
    warm_up_s: float = 12.0
    """Traffic before the day, so that lengths and start-ups are known. [s]"""
    objectives: tuple[Objective, ...] = (
        Objective(metric=Metric.TIME_TO_FIRST_TOKEN, percentile=95, target_s=0.5),
    )
    startup: str = "lognormal(2.5s,0.15)"
    period_s: float = 1.0
    """Between two turns of the operator. [s]"""
    scrape_s: float = 1.0
    window_s: float = 12.5
    """What stands for five minutes of the day. [s]"""
    stabilization_window_s: int = 12
    """Of scale-down: the default five minutes, compressed like the day. [s]"""
    queue_drain_s: int = 5
    """The default minute, compressed like the day. [s]"""
    rest_s: float = 20.0
    """Time at a steady trough in which nothing may be written. [s]"""
    max_replicas: int = 20
    seed: int = 7

    @property
    def compression(self) -> float:
        """How many seconds of the day pass in one."""
        return 300.0 / self.window_s


def deployment() -> dict[str, Any]:
    """Return the workload: a vLLM Deployment of one replica, as a model team would write it."""
    labels = {"app": NAME}
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.19.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
        "args": ["--served-model-name", MODEL, "--max-num-seqs", str(SLOTS)],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def service() -> dict[str, Any]:
    """Return the Service whose ready pods the gateway balances over."""
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"selector": {"app": NAME}, "ports": [{"name": "http", "port": 8000}]},
    }


def serving_fleet(scenario: Scenario) -> dict[str, Any]:
    """Return the minimal ServingFleet, its times compressed like the day."""
    return {
        "apiVersion": "fleetline.dev/v1alpha1",
        "kind": "ServingFleet",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": NAME},
            "model": {"name": MODEL},
            "objectives": [
                {
                    "metric": str(one.metric),
                    "percentile": one.percentile,
                    "target": f"{round(one.target_s * 1000)}ms",
                }
                for one in scenario.objectives
            ],
            "maxReplicas": scenario.max_replicas,
            "queueDrainSeconds": scenario.queue_drain_s,
            "behavior": {
                "scaleDown": {"stabilizationWindowSeconds": scenario.stabilization_window_s}
            },
        },
    }
