"""Controllers at work on the API server that `SIM_BACKEND` names.

`SIM_BACKEND=controlplane` is the real API server; `SIM_CONTROLLERS=real` puts Kubernetes' own
controllers and scheduler in the place of ours, so that the same tests say whether both agree.
"""

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import os
import threading
import uuid

import pytest
import pytest_asyncio

from sim_cluster import times
from sim_cluster.api_client import ApiClient, ApiError
from sim_cluster.controllers.running import running_controllers, running_endpoints
from sim_cluster.controlplane import build, roles, serve
from sim_cluster.informer import Informer, key_of
from sim_cluster.pods import is_terminating, node_name, phase
from sim_cluster.processes import temporary_folder
from sim_cluster.resources import NAMESPACES, NODES, PODS

BACKEND = os.environ.get("SIM_BACKEND", "memory")
CONTROLLERS = os.environ.get("SIM_CONTROLLERS", "ours")
ALLOCATABLE = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}


class Kubelet:
    """A node that starts pods at once and lets them go at once, unless told to wait."""

    def __init__(self, client):
        self.client = client
        self.holds_start = False
        self.holds_end = False
        self._dirty = asyncio.Queue()
        self._addresses = (f"10.1.{a}.{b}" for a, b in itertools.product(range(256), range(1, 255)))
        self.pods = Informer(client, PODS)
        self.pods.on_change(self._note)

    def _note(self, _, pod):
        if pod:
            self._dirty.put_nowait(key_of(pod))

    async def run(self):
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            while True:
                key = await self._dirty.get()
                try:
                    await self._tend(self.pods.get(*key))
                except ApiError as error:
                    if error.status not in {404, 409}:
                        raise

    def release(self):
        self.holds_start = self.holds_end = False
        for key in self.pods.objects:
            self._dirty.put_nowait(key)

    async def set_ready(self, pod, status):
        address = pod["status"].get("podIP") or next(self._addresses)
        ready = {"type": "Ready", "status": status, "lastTransitionTime": times.now()}
        changes = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        changes["conditions"] = [ready]
        await self.client.patch(PODS, *key_of(pod), {"status": changes}, subresource="status")

    async def _tend(self, pod):
        if pod is None or node_name(pod) is None:
            return
        if is_terminating(pod) and not self.holds_end:
            await self.client.delete(PODS, *key_of(pod), options={"gracePeriodSeconds": 0})
        elif phase(pod) == "Pending" and not self.holds_start:
            await self.set_ready(pod, "True")


class World:
    """A namespace of its own, a client, a kubelet, and patience."""

    def __init__(self, client, kubelet, namespace):
        self.client = client
        self.kubelet = kubelet
        self.namespace = namespace
        self._nodes = []

    async def add_node(self, name, *, taints=None, labels=None, **allocatable):
        spec = {"taints": taints} if taints else {}
        metadata = {"name": f"{name}-{self.namespace}", "labels": labels or {}}
        node = await self.client.create(NODES, {"metadata": metadata, "spec": spec})
        self._nodes.append(node["metadata"]["name"])
        resources = ALLOCATABLE | {key.replace("_", ".", 1): v for key, v in allocatable.items()}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        name = node["metadata"]["name"]
        await self.client.patch(NODES, None, name, {"status": status}, subresource="status")
        await self.client.patch(NODES, None, name, {"spec": {"taints": taints}})
        return name

    async def create(self, resource, name, **content):
        metadata = {"name": name, "namespace": self.namespace, **content.pop("metadata", {})}
        return await self.client.create(resource, {"metadata": metadata, **content})

    async def patch(self, resource, name, body, **options):
        return await self.client.patch(resource, self.namespace, name, body, **options)

    async def get(self, resource, name):
        return await self.client.get(resource, self.namespace, name)

    async def find(self, resource, name):
        return await self.client.find(resource, self.namespace, name)

    async def list(self, resource, **selectors):
        items, _ = await self.client.list(resource, self.namespace, **selectors)
        return items

    async def until(self, look, accept=bool, timeout_s=40):
        """Look until the answer is acceptable, and return it."""
        answer = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not accept(answer := await look()):
                    await asyncio.sleep(0.02)
        assert accept(answer), answer
        return answer

    async def pods(self, count, app="a"):
        """Wait for exactly so many ready pods that nobody has asked to go."""

        async def ready():
            items = await self.list(PODS, label_selector=f"app={app}")
            conditions = {
                pod["metadata"]["name"]: {
                    each["type"]: each["status"] for each in pod["status"].get("conditions", ())
                }
                for pod in items
            }
            return (
                [
                    pod
                    for pod in items
                    if conditions[pod["metadata"]["name"]].get("Ready") == "True"
                    and not is_terminating(pod)
                ]
                if len(items) == count
                else []
            )

        return await self.until(ready, lambda pods: len(pods) == count)

    async def leave(self):
        """Take everything along, so that no pod of this test waits for the next one's nodes."""
        self.kubelet.release()
        await self.client.delete(NAMESPACES, None, self.namespace)
        look = functools.partial(self.client.find, NAMESPACES, None, self.namespace)
        await self.until(look, lambda each: each is None)
        for name in self._nodes:
            await self.client.delete(NODES, None, name)


@contextlib.asynccontextmanager
async def _memory(folder):
    from sim_cluster.api.server import MemoryApi

    async with MemoryApi(port=0) as server:
        server.write_kubeconfig(folder / "kubeconfig")
        yield folder / "kubeconfig"


async def _serve_until(stop, started, folder):
    programs = roles.one_program(build.binary())
    if CONTROLLERS == "ours":
        programs = dataclasses.replace(programs, controller_manager=None, scheduler=None)
    async with serve.serving(programs, folder) as plane:
        started.append(plane.kubeconfig)
        await asyncio.to_thread(stop.wait)


@pytest.fixture(scope="session")
def real_kubeconfig():
    """One real API server for the session, kept by a thread."""
    if BACKEND != "controlplane":
        yield None
        return
    stop, started = threading.Event(), []
    with temporary_folder() as folder:
        thread = threading.Thread(target=lambda: asyncio.run(_serve_until(stop, started, folder)))
        thread.start()
        while not started and thread.is_alive():
            thread.join(0.05)
        yield started[0]
        stop.set()
        thread.join()


@pytest_asyncio.fixture
async def world(real_kubeconfig, tmp_path):
    """Controllers, a kubelet without nodes, and an empty namespace."""
    async with contextlib.AsyncExitStack() as stack:
        kubeconfig = real_kubeconfig or await stack.enter_async_context(_memory(tmp_path))
        client = await stack.enter_async_context(ApiClient.from_kubeconfig(kubeconfig))
        controllers = running_controllers if CONTROLLERS == "ours" else running_endpoints
        await stack.enter_async_context(controllers(client))
        kubelet = Kubelet(client)
        task = asyncio.create_task(kubelet.run())
        namespace = f"t-{uuid.uuid4().hex[:8]}"
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        world = World(client, kubelet, namespace)
        yield world
        if real_kubeconfig:
            await world.leave()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
