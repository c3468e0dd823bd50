"""What a fleet costs: accelerators held, from a pod's binding to the end of its drain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim_cluster.informer import Key
    from sim_cluster.nodes.clock import LiveClock
    from sim_cluster.nodes.pod_status import SimulatedPod


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A stretch of time in which a pod held accelerators."""

    key: Key
    accelerators: int
    begin_s: float
    end_s: float | None = None
    """None while it lasts."""


class Usage:
    """Every pod's holding of accelerators, ended ones included. Times are simulated seconds."""

    def __init__(self, clock: LiveClock) -> None:
        self._clock = clock
        self._held: dict[Key, Holding] = {}
        self._ended: list[Holding] = []

    @property
    def holdings(self) -> list[Holding]:
        """All holdings, those that have ended first."""
        return [*self._ended, *self._held.values()]

    @property
    def accelerators(self) -> int:
        """Accelerators held now."""
        return sum(one.accelerators for one in self._held.values())

    def accelerator_hours(self, *, namespace: str | None = None, since_s: float = 0.0) -> float:
        """Accelerators times hours since a moment, of one namespace or all. [h]"""
        now_s = self._clock.now_s()
        held_s = sum(
            one.accelerators
            * max(0.0, (now_s if one.end_s is None else one.end_s) - max(one.begin_s, since_s))
            for one in self.holdings
            if namespace in {None, one.key[0]}
        )
        return held_s / 3600

    def begin(self, pod: SimulatedPod) -> None:
        """Note that a pod was bound."""
        if pod.accelerators:
            self._held[pod.key] = Holding(
                key=pod.key, accelerators=pod.accelerators, begin_s=self._clock.now_s()
            )

    def end(self, pod: SimulatedPod) -> None:
        """Note that a pod has gone."""
        held = self._held.pop(pod.key, None)
        if held is not None:
            self._ended.append(
                Holding(
                    key=held.key,
                    accelerators=held.accelerators,
                    begin_s=held.begin_s,
                    end_s=self._clock.now_s(),
                )
            )
