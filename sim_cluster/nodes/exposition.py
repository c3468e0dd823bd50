"""
Prometheus text, written from templates: the lines of a pod differ only in their last word.

One registry of `prometheus_client` a pod takes milliseconds a scrape; this takes a fraction of one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sim_cluster.nodes.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sim_cluster.nodes.families import Family
    from sim_cluster.nodes.meters import Value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """The lines of one engine for a list of families, ready to be filled with values."""

    def __init__(
        self, families: Sequence[Family], labels: Mapping[str, str], *, created_s: float
    ) -> None:
        self._families = families
        self._templates = [_templates(family, labels) for family in families]
        self._created = number(created_s)

    def lines(
        self,
        values: Mapping[str, Value],
        *,
        without: Collection[str] = (),
    ) -> Iterator[str]:
        """Write every family; those that `values` does not name are 0."""
        for family, templates in zip(self._families, self._templates, strict=True):
            if family.name not in without:
                filled = _numbers(family, values.get(family.name), self._created)
                yield from map(str.__add__, templates, filled)


def _templates(family: Family, labels: Mapping[str, str]) -> list[str]:
    """Spell everything of a family's lines but their values; the first carries HELP and TYPE."""
    own = dict(labels) if family.by_engine else _without_engine(labels)
    variants = [{**own, family.label: value} for value in family.variants] or [own]
    name, created = family.name, family.created_name
    if family.kind == "histogram":
        bounds = [number(bound) for bound in family.buckets] + ["+Inf"]
        samples = [f"{name}_bucket{braces({**own, 'le': bound})} " for bound in bounds]
        samples += [f"{name}_count{braces(own)} ", f"{name}_sum{braces(own)} "]
    else:
        samples = [f"{name}{braces(variant)} " for variant in variants]
    samples[0] = f"{head(name, family.kind, family.about)}{samples[0]}"
    if family.kind != "gauge":
        twins = [f"{created}{braces(variant)} " for variant in variants]
        twins[0] = f"{head(created, 'gauge', family.about)}{twins[0]}"
        samples += twins
    return samples


def _numbers(family: Family, value: Value | None, created: str) -> Iterator[str]:
    count = max(len(family.variants), 1)
    if isinstance(value, Histogram):
        cumulative = value.cumulative()
        own = [*(f"{n}.0" for n in cumulative), f"{cumulative[-1]}.0", number(value.sum)]
    elif family.kind == "histogram":
        own = ["0.0"] * (len(family.buckets) + 3)
    elif isinstance(value, tuple):
        own = [number(one) for one in value]
    else:
        own = [number(0.0 if value is None else value)] * count
    twins = [] if family.kind == "gauge" else [created] * count
    return itertools.chain(own, twins)


def head(name: str, kind: str, about: str) -> str:
    """Write the comment lines before a family's samples."""
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def braces(labels: Mapping[str, str]) -> str:
    """Write labels as they stand after a name, sorted and escaped."""
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels)) + "}"


def number(value: float) -> str:
    """Write a value as Prometheus reads it."""
    if value != value:  # noqa: PLR0124 - the only number that differs from itself
        return "NaN"
    return repr(float(value)).replace("inf", "Inf")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _without_engine(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key != "engine"}
