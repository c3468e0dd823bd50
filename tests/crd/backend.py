"""The API server under test, by the switch that all of the tests share: `SIM_BACKEND`."""

import asyncio
import contextlib
import os
import threading

from sim_cluster import backends


@contextlib.contextmanager
def running_api(folder):
    """Yield the kubeconfig of an API server that runs beside the tests, in a thread of its own."""
    backend = backends.named(os.environ.get("SIM_BACKEND", "memory"))
    server = _Server(backend, folder)
    thread = threading.Thread(target=server.run, name="api under test")
    thread.start()
    try:
        yield server.kubeconfig()
    finally:
        server.stop()
        thread.join(timeout=60)


class _Server:
    def __init__(self, backend, folder):
        self._backend = backend
        self._folder = folder
        self._up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._kubeconfig = None
        self._error = None

    def run(self):
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:
            self._error = error
        finally:
            self._up.set()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self):
        async with backends.serving_api(self._backend, self._folder) as api:
            self._kubeconfig = api.kubeconfig
            self._up.set()
            await self._done.wait()

    def kubeconfig(self):
        self._up.wait(timeout=900)  # the control plane may have to be built first
        if self._error:
            raise self._error
        return self._kubeconfig

    def stop(self):
        with contextlib.suppress(RuntimeError):  # the loop has ended: it failed to start
            self._loop.call_soon_threadsafe(self._done.set)
