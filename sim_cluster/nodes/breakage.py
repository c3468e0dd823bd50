"""Faults on demand, from Python or as JSON over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim_cluster.nodes.faults import ScrapeFault
from sim_cluster.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sim_cluster.informer import Key
    from sim_cluster.nodes.simulation import Simulation


_NO_GRACE: Final = {"gracePeriodSeconds": 0}


class Faults:
    """What a test or a curious user can break, and mend."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def crash(self, key: Key, *, starts_again: bool = True) -> None:
        """Let a pod's container crash; unless it `starts_again` it crashes at every start."""
        self._simulation.lifecycle.crash(self._known(key), starts_again=starts_again)

    async def vanish(self, key: Key) -> None:
        """Delete a pod without grace: its process is gone, and so are its requests."""
        namespace, name = self._known(key)
        await self._simulation.client.delete(PODS, namespace, name, options=_NO_GRACE)

    def fail_readiness(self, key: Key) -> None:
        """Let a pod's readiness probe fail from now on."""
        self._simulation.lifecycle.set_readiness(self._known(key), fails=True)

    def restore_readiness(self, key: Key) -> None:
        """Let a pod's readiness probe succeed again."""
        self._simulation.lifecycle.set_readiness(self._known(key), fails=False)

    def scrape(self, key: Key, fault: ScrapeFault, *, families: Iterable[str] = ()) -> None:
        """Let a pod's `/metrics` misbehave; `families` names those that are missing."""
        replica = self._simulation.pool.replicas.get(key)
        if replica is None:
            raise KeyError(f"pod must be one that serves, got {key[0]}/{key[1]}")
        replica.begin_fault(fault, families)

    def silence_node(self, name: str) -> None:
        """Cut a node off: no lease is renewed, and its pods answer nobody."""
        simulation = self._simulation
        simulation.keeper.fall_silent(name)
        for key in self._pods_of(name):
            simulation.lifecycle.forget(key)
        simulation.kubelet.nodes.pop(name, None)

    def restore_node(self, name: str) -> None:
        """Let a node that was cut off come back; its pods start anew."""
        self._simulation.keeper.speak_again(name)
        self._simulation.adopt([name])

    async def remove_node(self, name: str) -> None:
        """Lose a node: its pods die at once, its object goes, and its pods' objects after it."""
        simulation = self._simulation
        keys = self._pods_of(name)
        self.silence_node(name)
        await simulation.keeper.remove(name)
        for namespace, pod in keys:  # as the pod garbage collector does, only sooner
            await simulation.client.delete(PODS, namespace, pod, options=_NO_GRACE)

    async def apply(self, wish: Mapping[str, Any]) -> None:
        """
        Do what a JSON body asks for.

        {"fault": "crash" | "crash-loop" | "vanish" | "fail-readiness" | "restore-readiness",
         "namespace": ..., "pod": ...}
        {"fault": "scrape", "namespace": ..., "pod": ..., "kind": a ScrapeFault, "families": [...]}
        {"fault": "silence-node" | "restore-node" | "remove-node", "node": ...}
        """
        fault = wish.get("fault")
        if fault == "remove-node":
            await self.remove_node(wish["node"])
        elif fault == "silence-node":
            self.silence_node(wish["node"])
        elif fault == "vanish":
            await self.vanish((wish["namespace"], wish["pod"]))
        elif fault == "restore-node":
            self.restore_node(wish["node"])
        else:
            self._apply_to_pod(fault, (wish["namespace"], wish["pod"]), wish)

    def _apply_to_pod(self, fault: str | None, key: Key, wish: Mapping[str, Any]) -> None:
        match fault:
            case "crash":
                self.crash(key)
            case "crash-loop":
                self.crash(key, starts_again=False)
            case "fail-readiness":
                self.fail_readiness(key)
            case "restore-readiness":
                self.restore_readiness(key)
            case "scrape":
                self.scrape(key, ScrapeFault(wish["kind"]), families=wish.get("families", ()))
            case _:
                raise ValueError(f"fault must be one of those documented, got {fault!r}")

    def _known(self, key: Key) -> Key:
        if key not in self._simulation.pods:
            raise KeyError(f"pod must be one on a simulated node, got {key[0]}/{key[1]}")
        return key

    def _pods_of(self, node: str) -> list[Key]:
        return [key for key, pod in self._simulation.pods.items() if pod.node == node]
