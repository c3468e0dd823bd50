"""The chart rendered by the real helm: values in, objects out."""

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from sim_cluster import tools

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "fleetline"

Json = dict[str, Any]


class RenderError(Exception):
    """Helm refused; the text is what it said."""


def render(
    values: Json | None = None, *, name: str = "fleetline", namespace: str = "ops"
) -> list[Json]:
    """Every object of the release, as it would be sent to the API server."""
    return [d for d in yaml.safe_load_all(text(values, name=name, namespace=namespace)) if d]


def text(values: Json | None = None, *, name: str = "fleetline", namespace: str = "ops") -> str:
    return _rendered(json.dumps(values or {}), name, namespace)


@functools.cache
def _rendered(values: str, name: str, namespace: str) -> str:
    """Run helm once for the same question."""
    command = [str(tools.helm()), "template", name, str(CHART), "--namespace", namespace]
    done = subprocess.run(
        [*command, "--values", "-"],
        input=values,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise RenderError(done.stderr)
    return done.stdout


def of_kind(objects: list[Json], kind: str) -> list[Json]:
    return [document for document in objects if document["kind"] == kind]


def one(objects: list[Json], kind: str, name: str = "fleetline") -> Json:
    """Return the one object of a kind and name."""
    (found,) = (d for d in of_kind(objects, kind) if d["metadata"]["name"] == name)
    return found


def container(objects: list[Json]) -> Json:
    pod: Json = one(objects, "Deployment")["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    return only


def merged(below: Json, above: Json) -> Json:
    """Values as Helm merges them: maps by key, all else replaced."""
    result = dict(below)
    for name, value in above.items():
        both_maps = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both_maps else value
    return result


EVERYTHING: Json = {
    "image": {"digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicaCount": 2,
    "prometheus": {"tokenSecret": {"name": "prometheus"}, "caConfigMap": {"name": "authorities"}},
    "extraScaleTargets": [{"apiGroup": "leaderworkerset.x-k8s.io", "resource": "leaderworkersets"}],
    "serviceAccount": {"annotations": {"example.com/role": "fleetline"}},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "podDisruptionBudget": {"enabled": True},
}
"""Every switch on that is off by default."""

LEAST: Json = {
    "crds": {"enabled": False},
    "rbac": {"create": False},
    "serviceAccount": {"create": False},
    "service": {"enabled": False},
    "podReading": {"enabled": False},
    "gpuDiscovery": {"enabled": False},
    "conflictDetection": {"enabled": False},
}
"""Every switch off that is on by default."""
