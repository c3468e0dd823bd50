"""Objects that the checks write."""

from copy import deepcopy
from typing import Any

import yaml

Json = dict[str, Any]
GROUP = "conformance.fleetline.dev"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/{{}}/widgets"

CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "shortNames": ["wd"],
            "categories": ["all", "toys"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                    },
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A widget to test with.",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["color"],
                                "x-kubernetes-validations": [
                                    {
                                        "rule": "!has(self.max) || self.replicas <= self.max",
                                        "message": "replicas must be <= max",
                                    },
                                    {
                                        "rule": "oldSelf.color != 'fixed' || self.color == 'fixed'",
                                        "message": "color is fixed",
                                        "fieldPath": ".color",
                                        "reason": "FieldValueForbidden",
                                    },
                                ],
                                "properties": {
                                    "color": {
                                        "type": "string",
                                        "enum": ["red", "blue", "fixed"],
                                        "description": "The color of the widget.",
                                    },
                                    "replicas": {
                                        "type": "integer",
                                        "minimum": 0,
                                        "default": 1,
                                        "description": "How many.",
                                    },
                                    "max": {"type": "integer", "maximum": 100},
                                    "code": {
                                        "type": "string",
                                        "pattern": "^[a-z]+$",
                                        "maxLength": 5,
                                        "minLength": 2,
                                    },
                                    "timeout": {
                                        "type": "string",
                                        "maxLength": 20,
                                        "x-kubernetes-validations": [
                                            {
                                                "rule": "duration(self) > duration('0s')",
                                                "messageExpression": (
                                                    "'timeout must be > 0s, got ' + self"
                                                ),
                                            }
                                        ],
                                    },
                                    "memory": {
                                        "x-kubernetes-int-or-string": True,
                                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                                    },
                                    "free": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "labels": {
                                        "type": "object",
                                        "maxProperties": 3,
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "tags": {
                                        "type": "array",
                                        "maxItems": 4,
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string", "maxLength": 10},
                                    },
                                    "parts": {
                                        "type": "array",
                                        "maxItems": 3,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "x-kubernetes-validations": [
                                                {
                                                    "rule": "self.size >= oldSelf.size",
                                                    "message": "a part never shrinks",
                                                }
                                            ],
                                            "properties": {
                                                "name": {"type": "string", "maxLength": 10},
                                                "size": {"type": "integer", "default": 7},
                                            },
                                        },
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "selector": {"type": "string"},
                                    "phase": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type", "status"],
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def crd() -> Json:
    """The definition of widgets."""
    return deepcopy(CRD)


def widget(name: str = "w", **spec: Any) -> Json:
    """A widget; it is red unless said otherwise."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"color": "red", **spec},
    }


def config_map(name: str = "c", **data: str) -> Json:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data or {"a": "1"},
    }


def pod(name: str = "p", **spec: Any) -> Json:
    """A pod that no scheduler looks at, so that it stays as it is."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "app", "image": "registry.example/app:1"}],
            **spec,
        },
    }


def deployment(name: str = "d", replicas: int | None = None) -> Json:
    """A Deployment whose pods no scheduler looks at."""
    spec: Json = {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "schedulerName": "nobody",
                "containers": [
                    {
                        "name": "app",
                        "image": "registry.example/app:1",
                        "env": [{"name": "A", "value": "1"}],
                        "ports": [{"containerPort": 8000}],
                    }
                ],
            },
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": spec,
    }


def text(*objects: object) -> str:
    """Several objects as a file."""
    return yaml.safe_dump_all(objects)
