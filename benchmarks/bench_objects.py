"""Objects that fill the in-memory API server: a custom resource with a rule, and serving pods."""

from typing import Any

GROUP = "bench.fleetline.dev"
Json = dict[str, Any]


def definition() -> Json:
    """A small custom resource with a rule."""
    spec = {
        "type": "object",
        "properties": {"replicas": {"type": "integer", "default": 1}, "max": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "!has(self.max) || self.replicas <= self.max"}],
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def thing(name: str) -> Json:
    """One custom object."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"max": 10},
    }


def pod(index: int) -> Json:
    """A pod of the size that a serving pod has."""
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-num-seqs", "256"],
        "ports": [{"containerPort": 8000, "name": "http"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
    }
    labels = {"app": f"fleet-{index % 1000}", "pod-template-hash": "abc"}
    return {
        "metadata": {"name": f"pod-{index:05d}", "labels": labels},
        "spec": {"containers": [container], "nodeName": f"node-{index % 2500}"},
    }
