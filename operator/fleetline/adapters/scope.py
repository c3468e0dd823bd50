"""
What all queries of a turn share: namespaces, and the labels that tell pods and models apart.

Every selector carries the namespaces of the fleets; one that is about few pods names these too.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleetline.adapters.manifest import FleetObject

MODEL_LABELS: Final = ("model_name", "model")
TAG: Final = "fleetline_source"
"""Label that says which question and metric a row answers; added in the query."""

MOST_NAMESPACES: Final = 200
"""Beyond this many the matcher would be longer than what it saves."""

MOST_PODS: Final = 500
"""The same for pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What all queries of a turn share."""

    namespaces: tuple[str, ...]
    model_labels: tuple[str, ...] = MODEL_LABELS
    window_s: float = 60.0
    namespace_label: str = "namespace"
    pod_label: str = "pod"

    @property
    def by_pod(self) -> str:
        """Labels of a row about one pod."""
        return ", ".join((self.namespace_label, self.pod_label, *self.model_labels))

    @property
    def by_model(self) -> str:
        """Labels of a row about all pods of one model in one namespace."""
        return ", ".join((self.namespace_label, *self.model_labels))

    def selector(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        """Return `name{...}` restricted to the fleets' namespaces."""
        matchers = [f'{key}="{escaped(value)}"' for key, value in (labels or {}).items()]
        if 0 < len(self.namespaces) <= MOST_NAMESPACES:
            names = "|".join(re.escape(name) for name in self.namespaces)
            matchers.append(f'{self.namespace_label}=~"{escaped(names)}"')
        else:
            matchers.append(f'{self.namespace_label}!=""')
        return f"{name}{{{', '.join(matchers)}}}"


def escaped(value: str) -> str:
    """Escape a label value for a double-quoted PromQL string."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def of_pods(scope: Scope, selector: str, pods: Collection[str] | None) -> str:
    """Narrow a selector to some pods, unless they are too many to be named."""
    if pods is None or len(pods) > MOST_PODS:
        return selector
    names = escaped("|".join(re.escape(pod) for pod in sorted(pods)))
    return f'{selector.removesuffix("}")}, {scope.pod_label}=~"{names}"}}'


def model_labels_of(objects: Iterable[FleetObject]) -> tuple[str, ...]:
    """Labels that may tell models apart: the usual ones, and those that the fleets' owners name."""
    own = {one.metrics.model_label for one in objects if one.metrics.model_label is not None}
    return (*MODEL_LABELS, *sorted(own.difference(MODEL_LABELS)))
