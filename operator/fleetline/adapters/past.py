"""
Prometheus as it was: the operator's own queries, answered at a moment of the past.

Each query is asked as a range for an hour at a time, and looked up at the moment wanted, so that a
day of turns takes a few hundred queries and sees exactly what turns would have seen.
"""

import asyncio
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from fleetline.adapters.engine_metrics import Quantity, questions
from fleetline.adapters.prometheus import Answer, Prometheus, Row, Span
from fleetline.adapters.sample_stream import LARGEST, Take
from fleetline.adapters.scope import Scope
from fleetline.control.fleet import TargetReference
from fleetline.control.ports import Pod
from fleetline.errors import ObservationError

STEPS_AT_ONCE: Final = 240
"""An hour at the usual period; far below the 11,000 that Prometheus allows."""

PODS_OF_KIND: Final = {"Deployment": r"-[a-z0-9]+-[a-z0-9]+", "StatefulSet": r"-[0-9]+"}
"""How the names of a workload's pods go on after its own."""

LONG_S: Final = 3600.0

Series = tuple[Mapping[str, str], dict[int, float]]
"""Labels, and the value by step."""


class Past(Prometheus):
    """Answers as of `now_s`, which its owner moves on step by step."""

    def __init__(self, url: str, *, step_s: float, deadline_s: float, **access: Any) -> None:
        """Prepare; `access` is what `Prometheus` takes. Moments are multiples of `step_s`."""
        super().__init__(url, deadline_s=deadline_s, **access)
        self.step_s = step_s
        self.now_s = 0.0
        self._known: dict[tuple[str, int], asyncio.Task[tuple[list[Series], tuple[str, ...]]]] = {}

    async def query(self, promql: str) -> Answer:
        """Answer as of the moment; PrometheusError if it cannot be had."""
        rows, warnings = await self._rows(promql)
        return Answer(rows=tuple(rows), warnings=warnings)

    async def feed(self, promql: str, take: Take) -> tuple[str, ...]:
        """Hand on the rows as of the moment."""
        rows, warnings = await self._rows(promql)
        take(rows)
        return warnings

    async def names(self, selector: str) -> frozenset[str]:
        """Answer as of the moment: the index does not tell when a series was there."""
        rows, _ = await self._rows(f"count by (__name__) ({selector})")
        return frozenset(row.labels.get("__name__", "") for row in rows)

    async def raw(
        self, promql: str, take: Take | None = None, *, span: Span | None = None
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Ask as of the moment, unless another span is given."""
        moment = Span(start_s=self.now_s, end_s=self.now_s)
        return await super().raw(promql, take, span=span or moment)

    async def _rows(self, promql: str) -> tuple[list[Row], tuple[str, ...]]:
        step = round(self.now_s / self.step_s)
        part = step // STEPS_AT_ONCE
        if (promql, part) not in self._known:
            self._known = {key: one for key, one in self._known.items() if key[1] >= part}
            self._known[promql, part] = asyncio.create_task(self._read(promql, part))
        try:
            series, warnings = await self._known[promql, part]
        except ObservationError:
            self._known.pop((promql, part), None)
            raise
        return [Row(labels, values[step]) for labels, values in series if step in values], warnings

    async def _read(self, promql: str, part: int) -> tuple[list[Series], tuple[str, ...]]:
        first = part * STEPS_AT_ONCE
        last = first + STEPS_AT_ONCE - 1
        span = Span(start_s=first * self.step_s, end_s=last * self.step_s, step_s=self.step_s)
        entries, warnings = await self.raw(promql, span=span)
        return [self._series(entry) for entry in entries], warnings

    def _series(self, entry: Any) -> Series:
        values = {}
        for at_s, told in entry.get("values") or ():
            value = float(told)
            if math.isfinite(value) and abs(value) <= LARGEST:
                values[round(float(at_s) / self.step_s)] = value
        return entry.get("metric") or {}, values


class PastPods:
    """The pods of a target as their series show them: there is no other record of them."""

    def __init__(self, past: Past, scope: Scope, target: TargetReference) -> None:
        """Look for pods of `target` in the namespaces of `scope`."""
        self._past = past
        self._pattern = re.compile(
            re.escape(target.name) + PODS_OF_KIND.get(target.kind, r"-[a-z0-9-]+")
        )
        self._pod_label = scope.pod_label
        by = f"{scope.namespace_label}, {scope.pod_label}"
        self._promql = " or ".join(
            f"max by ({by}) ({scope.selector(one.name, one.labels)})"
            for one in questions()[Quantity.RUNNING].candidates
        )
        self._since_s: dict[str, float] = {}
        """Also of those that show nothing now: after a gap in the past they are no newer."""

    async def read(self) -> tuple[Pod, ...]:
        """Pods that show running requests now; each is as old as its series."""
        answer = await self._past.query(self._promql)
        names = {row.labels.get(self._pod_label, "") for row in answer.rows}
        found = sorted(name for name in names if self._pattern.fullmatch(name))
        now_s, known = self._past.now_s, self._since_s
        since_s = now_s if known else now_s - LONG_S  # the first ones were there before
        for name in found:
            known.setdefault(name, since_s)
        return tuple(
            Pod(name=name, created_s=known[name], ready_since_s=known[name]) for name in found
        )
