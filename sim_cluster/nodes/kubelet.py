"""
The kubelets of all simulated nodes in one: they bring the API server and their pods together.

Level-triggered: whatever happens (a change in the API, a timer, a replica that has drained) puts
the pod's key on a queue, and a few workers compare what is with what the API server has, one pod at
a time each. A pod without traffic costs a dictionary entry; there is no task and no request for it
at rest.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

import aiohttp

from sim_cluster.api_client import ApiError
from sim_cluster.nodes.pod_status import SimulatedPod, Stage, status_of
from sim_cluster.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetline.model.hardware import Accelerator
    from sim_cluster.api_client import ApiClient, Object
    from sim_cluster.informer import Informer, Key
    from sim_cluster.nodes.lifecycle import Lifecycle

_LOG = logging.getLogger(__name__)

WORKERS: Final = 32
HOST_ADDRESS: Final = "127.0.0.1"
_RETRY_S: Final = 0.5
_BUSY_S: Final = 0.05


class Kubelet:
    """Reports pods to the API server, and learns from it which there are to be."""

    def __init__(self, client: ApiClient, pods: Informer, lifecycle: Lifecycle) -> None:
        self.nodes: dict[str, Accelerator | None] = {}
        """Nodes whose pods are ours, with what they carry."""
        self._client = client
        self._informer = pods
        self._lifecycle = lifecycle
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        pods.on_change(self._changed)
        lifecycle.on_change.append(lambda pod: self.enqueue(pod.key))

    async def work(self) -> None:
        """Bring pods and API together until cancelled; run `WORKERS` of these."""
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            if key in self._busy:
                self._enqueue_later(key, _BUSY_S)
                continue
            self._busy.add(key)
            try:
                await self._sync(key)
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                _LOG.debug("pod %s/%s: %r", *key, error)
                self._enqueue_later(key, _RETRY_S)
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

    def _enqueue_later(self, key: Key, delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self.enqueue, key)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        manifest = after or before
        if manifest is not None and manifest["spec"].get("nodeName") in self.nodes:
            metadata = manifest["metadata"]
            self.enqueue((metadata["namespace"], metadata["name"]))

    async def _sync(self, key: Key) -> None:
        manifest, pod = self._informer.get(*key), self._lifecycle.pods.get(key)
        if pod is not None and (manifest is None or manifest["metadata"]["uid"] != pod.uid):
            self._lifecycle.forget(key)
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
            accelerator = self.nodes[manifest["spec"]["nodeName"]]
            pod = self._lifecycle.take_in(key, manifest, accelerator)
        if leaving and pod.stage not in {Stage.DRAINING, Stage.ENDED}:
            self._lifecycle.drain(pod, manifest)
        if pod.stage is Stage.ENDED:
            await self._delete(manifest)
        else:
            await self._report(pod, manifest)

    async def _report(self, pod: SimulatedPod, manifest: Object) -> None:
        status = status_of(pod, manifest, host_ip=HOST_ADDRESS)
        digest, ready = hash(json.dumps(status)), pod.is_ready
        if digest == pod.sent:
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
        pod.sent, pod.sent_ready = digest, ready

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
