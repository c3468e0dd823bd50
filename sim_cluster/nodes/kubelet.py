"""
The kubelets of all simulated nodes in one: pods bound to them live, serve and end.

Level-triggered: whatever happens (a change in the API, a timer, a replica that has drained) puts
the pod's key on a queue, and a few workers bring API and pod together, one pod at a time each.
A pod without traffic costs a dictionary entry; there is no task and no request for it at rest.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from fleetline.errors import ModelError
from sim_cluster.api_client import ApiError
from sim_cluster.nodes.engine_spec import EngineSpec, read_engine
from sim_cluster.nodes.live_replica import LiveReplica
from sim_cluster.nodes.pod_status import SimulatedPod, Stage, status_of, timestamp
from sim_cluster.nodes.wishes import read_wishes
from sim_cluster.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetline.model.hardware import Accelerator
    from sim_cluster.api_client import ApiClient, Object
    from sim_cluster.informer import Informer, Key
    from sim_cluster.nodes.addresses import AddressBook
    from sim_cluster.nodes.clock import LiveClock
    from sim_cluster.nodes.pool import ReplicaPool
    from sim_cluster.nodes.startup import StartupTime

_LOG = logging.getLogger(__name__)

WORKERS: Final = 32
HOST_ADDRESS: Final = "127.0.0.1"
FIRST_BACKOFF_S: Final = 10.0  # the kubelet's crash-loop back-off: 10 s, doubled up to 5 min
LONGEST_BACKOFF_S: Final = 300.0
_RETRY_S: Final = 0.5
_DEFAULT_GRACE_S: Final = 30.0


class Kubelet:
    """Keeps the pods of simulated nodes."""

    def __init__(
        self,
        client: ApiClient,
        pods: Informer,
        *,
        clock: LiveClock,
        pool: ReplicaPool,
        addresses: AddressBook,
        startup: StartupTime,
        seed: int,
    ) -> None:
        self.nodes: dict[str, Accelerator | None] = {}
        """Nodes whose pods are ours, with what they carry."""
        self.pods: dict[Key, SimulatedPod] = {}
        self.on_serving: list[Callable[[SimulatedPod], None]] = []
        self.on_stopped: list[Callable[[SimulatedPod], None]] = []
        self.on_forgotten: list[Callable[[SimulatedPod], None]] = []
        self._client = client
        self._informer = pods
        self._clock = clock
        self._pool = pool
        self._addresses = addresses
        self._startup = startup
        self._chance = random.Random(seed)  # noqa: S311 - a simulation
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        pods.on_change(self._changed)
        pool.on_drained.append(self._ended)

    async def work(self) -> None:
        """Bring pods and API together until cancelled; run `WORKERS` of these."""
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            if key in self._busy:  # its worker looks again when it is done
                asyncio.get_running_loop().call_later(_RETRY_S / 10, self.enqueue, key)
                continue
            self._busy.add(key)
            try:
                await self._sync(key)
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                _LOG.debug("pod %s/%s: %r", *key, error)
                asyncio.get_running_loop().call_later(_RETRY_S, self.enqueue, key)
            finally:
                self._busy.discard(key)

    def enqueue(self, key: Key) -> None:
        """Have a worker look at a pod."""
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    def adopt(self, nodes: Mapping[str, Accelerator | None]) -> None:
        """Keep the pods of these nodes from now on, those that are bound already included."""
        self.nodes |= nodes
        for key, manifest in self._informer.objects.items():
            if manifest["spec"].get("nodeName") in nodes:
                self.enqueue(key)

    def crash(self, key: Key, *, starts_again: bool = True) -> None:
        """End the pod's container as a crash would; it is restarted after the back-off."""
        pod = self.pods[key]
        self._stop_serving(pod)
        pod.stage = Stage.CRASHED
        pod.ended_at = timestamp()
        pod.fails_to_start = not starts_again
        backoff_s = min(FIRST_BACKOFF_S * 2**pod.restarts, LONGEST_BACKOFF_S)
        self._after(pod, backoff_s, self._restart)
        self.enqueue(key)

    def set_readiness(self, key: Key, *, fails: bool) -> None:
        """Let the readiness probe fail, or succeed again; the engine serves on."""
        self.pods[key].readiness_fails = fails
        self.enqueue(key)

    def lose(self, key: Key) -> None:
        """Forget a pod as if its node had burnt: no word to the API server."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._stop_serving(pod)
            for listener in self.on_forgotten:
                listener(pod)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        manifest = after or before
        if manifest is not None and manifest["spec"].get("nodeName") in self.nodes:
            metadata = manifest["metadata"]
            self.enqueue((metadata["namespace"], metadata["name"]))

    async def _sync(self, key: Key) -> None:
        manifest, pod = self._informer.get(*key), self.pods.get(key)
        if pod is not None and (manifest is None or manifest["metadata"]["uid"] != pod.uid):
            self.lose(key)
            pod = None
        if manifest is None or manifest["spec"].get("nodeName") not in self.nodes:
            return
        leaving = "deletionTimestamp" in manifest["metadata"]
        if pod is None:
            if leaving:
                await self._delete(manifest)
                return
            if manifest.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
                return
            pod = self._take_in(key, manifest)
        if leaving and pod.stage not in {Stage.DRAINING, Stage.ENDED}:
            self._drain(pod, manifest)
        if pod.stage is Stage.ENDED:
            await self._delete(manifest)
            return
        await self._report(pod, manifest)

    async def _report(self, pod: SimulatedPod, manifest: Object) -> None:
        status = status_of(pod, manifest, host_ip=HOST_ADDRESS)
        if status == pod.sent:
            return
        # the uid makes the API server refuse if the pod has been replaced under the same name
        body = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(PODS, *pod.key, body, subresource="status")
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
            _LOG.debug("pod %s/%s is gone: %s", *pod.key, error)
            return
        pod.sent = status

    async def _delete(self, manifest: Object) -> None:
        metadata = manifest["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        try:
            await self._client.delete(
                PODS, metadata["namespace"], metadata["name"], options=options
            )
        except ApiError as error:
            if error.status != 409:
                raise

    def _take_in(self, key: Key, manifest: Object) -> SimulatedPod:
        """Give a pod that has just been bound an address and a time to start in."""
        engine = self._engine(manifest)
        wishes = read_wishes(manifest, self._startup)
        if wishes.complaint:
            _LOG.warning("pod %s/%s: %s", *key, wishes.complaint)
        ip, _ = self._addresses.take(engine.port if engine else None)
        pod = SimulatedPod(
            key=key,
            uid=manifest["metadata"]["uid"],
            node=manifest["spec"]["nodeName"],
            ip=ip,
            stage=Stage.PULLING if wishes.failure == "image-pull" else Stage.STARTING,
            startup_s=wishes.startup.draw_s(self._chance),
            readiness_fails=wishes.failure == "readiness",
            fails_to_start=wishes.failure == "start",
            begun_at=timestamp(),
            started_at=timestamp(),
        )
        self.pods[key] = pod
        if pod.stage is Stage.STARTING:
            self._start(pod)
        return pod

    def _engine(self, manifest: Mapping[str, Any]) -> EngineSpec | None:
        accelerator = self.nodes[manifest["spec"]["nodeName"]]
        if accelerator is None:
            return None
        try:
            return read_engine(manifest, accelerator)
        except ValueError as error:
            metadata = manifest["metadata"]
            _LOG.warning("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
            return None

    def _start(self, pod: SimulatedPod) -> None:
        if pod.startup_s > 0:
            self._after(pod, pod.startup_s, self._serve)
        else:
            self._serve(pod)

    def _serve(self, pod: SimulatedPod) -> None:
        """End the start: the engine listens, and its readiness probe succeeds."""
        manifest = self._informer.get(*pod.key)
        engine = self._engine(manifest) if manifest else None
        if pod.fails_to_start or not self._load(pod, engine):
            self.crash(pod.key, starts_again=False)
            return
        pod.stage = Stage.SERVING
        for listener in self.on_serving:
            listener(pod)
        self.enqueue(pod.key)

    def _load(self, pod: SimulatedPod, engine: EngineSpec | None) -> bool:
        """Put the pod's engine into service; say whether its model fits into memory."""
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
        self.enqueue(pod.key)

    def _drain(self, pod: SimulatedPod, manifest: Object) -> None:
        """Take no new requests, finish the old ones, and end when that or the grace is over."""
        grace_s = manifest["metadata"].get("deletionGracePeriodSeconds", _DEFAULT_GRACE_S)
        served = pod.stage is Stage.SERVING
        pod.stage = Stage.DRAINING
        if served and self._pool.drain(pod.key):
            self._after(pod, float(grace_s), self._end)
        else:
            self._end(pod)

    def _ended(self, key: Key) -> None:
        if key in self.pods:
            self._end(self.pods[key])

    def _end(self, pod: SimulatedPod) -> None:
        self._stop_serving(pod)
        pod.stage = Stage.ENDED
        self.enqueue(pod.key)

    def _stop_serving(self, pod: SimulatedPod) -> None:
        if pod.wake is not None:
            pod.wake.cancel()
            pod.wake = None
        self._pool.remove(pod.key)
        for listener in self.on_stopped:
            listener(pod)

    def _after(
        self, pod: SimulatedPod, delay_s: float, action: Callable[[SimulatedPod], None]
    ) -> None:
        if pod.wake is not None:
            pod.wake.cancel()
        loop = asyncio.get_running_loop()
        pod.wake = loop.call_later(self._clock.wall_s(delay_s), action, pod)
