"""
The stages of pods' lives, and what moves a pod from one to the next: time, faults, deletion.

Nothing here speaks to the API server; whoever does is told which pod has changed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Any, Final

from fleetline.errors import ModelError
from sim_cluster.nodes.engine_spec import EngineSpec, accelerators_of, read_engine
from sim_cluster.nodes.live_replica import LiveReplica
from sim_cluster.nodes.pod_status import SimulatedPod, Stage, timestamp
from sim_cluster.nodes.wishes import read_wishes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetline.model.hardware import Accelerator
    from sim_cluster.informer import Key
    from sim_cluster.nodes.addresses import AddressBook
    from sim_cluster.nodes.clock import LiveClock
    from sim_cluster.nodes.pool import ReplicaPool
    from sim_cluster.nodes.startup import StartupTime

    Listener = Callable[[SimulatedPod], None]

_LOG = logging.getLogger(__name__)

FIRST_BACKOFF_S: Final = 10.0  # the kubelet's crash-loop back-off: 10 s, doubled up to 5 min
LONGEST_BACKOFF_S: Final = 300.0
_DEFAULT_GRACE_S: Final = 30.0


class Lifecycle:
    """The pods of all simulated nodes."""

    def __init__(
        self,
        *,
        clock: LiveClock,
        pool: ReplicaPool,
        addresses: AddressBook,
        startup: StartupTime,
        seed: int,
    ) -> None:
        self.pods: dict[Key, SimulatedPod] = {}
        self.on_change: list[Listener] = []
        """A pod has come to another stage."""
        self.on_bound: list[Listener] = []
        self.on_serving: list[Listener] = []
        self.on_stopped: list[Listener] = []
        self.on_forgotten: list[Listener] = []
        self._engines: dict[Key, EngineSpec] = {}
        self._clock = clock
        self._pool = pool
        self._addresses = addresses
        self._startup = startup
        self._chance = random.Random(seed)  # noqa: S311 - a simulation
        pool.on_drained.append(self._drained)

    def take_in(
        self, key: Key, manifest: Mapping[str, Any], accelerator: Accelerator | None
    ) -> SimulatedPod:
        """Give a pod that has been bound an address and a time to start in."""
        engine = _engine_of(manifest, accelerator)
        wishes = read_wishes(manifest, self._startup)
        if wishes.complaint:
            _LOG.warning("pod %s/%s: %s", *key, wishes.complaint)
        pod = SimulatedPod(
            key=key,
            uid=manifest["metadata"]["uid"],
            node=manifest["spec"]["nodeName"],
            ip=self._addresses.take(engine.port if engine else None),
            accelerators=accelerators_of(manifest),
            stage=Stage.PULLING if wishes.failure == "image-pull" else Stage.STARTING,
            startup_s=wishes.startup.draw_s(self._chance),
            readiness_fails=wishes.failure == "readiness",
            fails_to_start=wishes.failure == "start",
            begun_at=timestamp(),
            started_at=timestamp(),
        )
        self.pods[key] = pod
        if engine is not None:
            self._engines[key] = engine
        _tell(self.on_bound, pod)
        if pod.stage is Stage.STARTING:
            self._start(pod)
        return pod

    def forget(self, key: Key) -> None:
        """Drop a pod as if its node had burnt."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._stop_serving(pod)
            self._engines.pop(key, None)
            _tell(self.on_forgotten, pod)

    def drain(self, pod: SimulatedPod, manifest: Mapping[str, Any]) -> None:
        """Take no new requests, finish the old ones, and end when that or the grace is over."""
        grace_s = manifest["metadata"].get("deletionGracePeriodSeconds", _DEFAULT_GRACE_S)
        served = pod.stage is Stage.SERVING
        pod.stage = Stage.DRAINING
        if served and self._pool.drain(pod.key):
            self._after(pod, float(grace_s), self._end)
        else:
            self._end(pod)

    def crash(self, key: Key, *, starts_again: bool = True) -> None:
        """End the pod's container as a crash would; it is started again after the back-off."""
        pod = self.pods[key]
        self._stop_serving(pod)
        pod.stage = Stage.CRASHED
        pod.ended_at = timestamp()
        pod.fails_to_start = not starts_again
        backoff_s = min(FIRST_BACKOFF_S * 2**pod.restarts, LONGEST_BACKOFF_S)
        self._after(pod, backoff_s, self._restart)
        _tell(self.on_change, pod)

    def set_readiness(self, key: Key, *, fails: bool) -> None:
        """Let the readiness probe fail, or succeed again; the engine serves on."""
        pod = self.pods[key]
        pod.readiness_fails = fails
        _tell(self.on_change, pod)

    def _start(self, pod: SimulatedPod) -> None:
        if pod.startup_s > 0:
            self._after(pod, pod.startup_s, self._serve)
        else:
            self._serve(pod)

    def _serve(self, pod: SimulatedPod) -> None:
        """End the start: the engine listens, and its readiness probe succeeds."""
        if pod.fails_to_start or not self._load(pod):
            self.crash(pod.key, starts_again=False)
            return
        pod.stage = Stage.SERVING
        _tell(self.on_serving, pod)
        _tell(self.on_change, pod)

    def _load(self, pod: SimulatedPod) -> bool:
        """Put the pod's engine into service; say whether its model fits into memory."""
        engine = self._engines.get(pod.key)
        if engine is not None:
            try:
                self._pool.add(LiveReplica(pod.key, engine, created_s=time.time()))
            except ModelError as error:
                _LOG.warning("pod %s/%s runs out of memory: %s", *pod.key, error)
                return False
        return True

    def _restart(self, pod: SimulatedPod) -> None:
        pod.restarts += 1
        pod.stage = Stage.STARTING
        pod.started_at = timestamp()
        self._start(pod)
        _tell(self.on_change, pod)

    def _drained(self, key: Key) -> None:
        if key in self.pods:
            self._end(self.pods[key])

    def _end(self, pod: SimulatedPod) -> None:
        self._stop_serving(pod)
        pod.stage = Stage.ENDED
        _tell(self.on_change, pod)

    def _stop_serving(self, pod: SimulatedPod) -> None:
        if pod.wake is not None:
            pod.wake.cancel()
            pod.wake = None
        self._pool.remove(pod.key)
        _tell(self.on_stopped, pod)

    def _after(self, pod: SimulatedPod, delay_s: float, action: Listener) -> None:
        if pod.wake is not None:
            pod.wake.cancel()
        loop = asyncio.get_running_loop()
        pod.wake = loop.call_later(self._clock.wall_s(delay_s), action, pod)


def _tell(listeners: list[Listener], pod: SimulatedPod) -> None:
    for listener in listeners:
        listener(pod)


def _engine_of(manifest: Mapping[str, Any], accelerator: Accelerator | None) -> EngineSpec | None:
    if accelerator is None:
        return None
    try:
        return read_engine(manifest, accelerator)
    except ValueError as error:
        metadata = manifest["metadata"]
        _LOG.warning("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
        return None
