"""Label selectors, as Deployments, Services and queries write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.api_client import Object


def labels_of(item: Object) -> Mapping[str, str]:
    """Labels of an object; empty where it has none."""
    return item["metadata"].get("labels") or {}


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector (`matchLabels`, `matchExpressions`) accepts the labels.

    An empty selector accepts everything; an absent one accepts nothing.
    """
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(meets(term, labels) for term in selector.get("matchExpressions") or ())


def meets(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet one requirement of a LabelSelector or a NodeSelectorTerm."""
    value, values = labels.get(term["key"]), list(term.get("values") or ())
    match term["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
        case other:
            raise ValueError(
                f"operator must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt, got {other!r}"
            )


def selects(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether a Service's selector (plain equality, never empty) accepts the labels."""
    if not selector:
        return False
    return all(labels.get(key) == value for key, value in selector.items())
