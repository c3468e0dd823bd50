"""What was written, as the API server counts it, and what it changed in a status."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sim_cluster.api_client import ApiClient
from sim_cluster.launch import Cluster

WRITTEN: Final = ("servingfleets", "servingfleets/status", "deployments", "deployments/scale")
"""What the operator, or a person, would PATCH; controllers and nodes write other things."""

LINE: Final = re.compile(r"apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)")
LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
MOST_CHANGES: Final = 6


async def patches(cluster: Cluster, client: ApiClient) -> Counter[str]:
    """Return the PATCHes on fleets and their targets so far, by `plural[/subresource]`."""
    memory = cluster.api.memory
    if memory is None:
        return patches_in(await client.text("/metrics"))
    counts = memory.request_counts
    return Counter({name: counts.count(verb="patch", resource=name) for name in WRITTEN})


def patches_in(metrics: str) -> Counter[str]:
    """Read the same from the metrics of a real API server."""
    found: Counter[str] = Counter()
    for line in LINE.finditer(metrics):
        labels = dict(LABEL.findall(line["labels"]))
        name = f"{labels.get('resource')}/{labels.get('subresource', '')}".rstrip("/")
        if labels.get("verb") in ("PATCH", "APPLY") and name in WRITTEN:
            found[name] += round(float(line["count"]))
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say which values of a status differ, the first few of them."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    words = [
        f"{name} {old.get(name, '-')} -> {new.get(name, '-')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    more = len(words) - MOST_CHANGES
    return ", ".join(words[:MOST_CHANGES]) + (f" and {more} more" if more > 0 else "")


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            kind = inner.get("type", inner.get("name")) if isinstance(inner, Mapping) else None
            yield from _leaves(inner, f"{name}[{kind or place}]")
    else:
        yield name, str(value)
