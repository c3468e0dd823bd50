"""
The same checks on every API server.

    SIM_BACKEND=memory|controlplane|kubeconfig pytest tests/conformance

The report header names the backend, and each test carries it as a property.
"""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sim_cluster import tools
from sim_cluster.backends import Backend, serving_api
from tests.conformance.client import Client, Tool
from tests.conformance.manifests import GROUP, WIDGETS, crd

BACKEND = os.environ.get("SIM_BACKEND", "memory")


def pytest_report_header() -> str:
    return f"conformance backend: {BACKEND}"


@pytest.fixture(autouse=True)
def _backend_recorded(record_property: Any) -> None:
    record_property("backend", BACKEND)


class _Running:
    """A backend that runs in a thread with a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self.kubeconfig: Path | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Path:
        self._thread.start()
        self._ready.wait(timeout=1800)
        if self.kubeconfig is None:
            message = f"cannot start the backend {BACKEND}: {self.error}"
            raise RuntimeError(message) from self.error
        return self.kubeconfig

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        given = os.environ.get("SIM_KUBECONFIG") or os.environ.get("KUBECONFIG")
        path = Path(given) if given and BACKEND == "kubeconfig" else None
        async with serving_api(Backend(BACKEND), self._folder, kubeconfig=path) as api:
            self.kubeconfig = self._folder / "conformance.kubeconfig"
            shutil.copy(api.kubeconfig, self.kubeconfig)
            self._ready.set()
            await self._stop.wait()


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the backend's administrator."""
    with _Running(tmp_path_factory.mktemp("backend")) as path:
        yield path


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[Client]:
    """A client of the administrator."""
    client = Client(kubeconfig)
    yield client
    client.close()


def eventually(check: Any, timeout_s: float = 60.0) -> Any:
    """The first truthy result of a check."""
    ends = time.monotonic() + timeout_s
    while True:
        found = check()
        if found or time.monotonic() > ends:
            assert found, f"{check} was not true within {timeout_s:g} s"
            return found
        time.sleep(0.02)


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    """A namespace of its own for each test."""
    body = {"metadata": {"generateName": "check-"}}
    name = api.post("/api/v1/namespaces", body).body["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: api.get(account).code == 200)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def _definition(api: Client) -> Iterator[None]:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    created = api.post(path, crd())
    assert created.code in (201, 409), created.body
    eventually(lambda: api.get(f"/apis/{GROUP}/v1/widgets").code == 200)
    # The real server publishes the schema of a new kind a little later than it serves the kind.
    described = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    document = f"/openapi/v3/apis/{GROUP}/v1"
    eventually(
        lambda: (reply := api.get(document)).code == 200 and described in reply.body["paths"]
    )
    yield
    api.delete(f"{path}/widgets.{GROUP}")


@pytest.fixture
def widgets(_definition: None, namespace: str) -> str:
    """The path of widgets in the test's namespace."""
    return WIDGETS.format(namespace)


@pytest.fixture(scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def _tool(name: str, kubeconfig: Path, home: Path, namespace: str) -> Tool:
    environment = {"HOME": str(home), "KUBECONFIG": str(kubeconfig), "PATH": os.environ["PATH"]}
    binary = tools.kubectl() if name == "kubectl" else tools.helm()
    return Tool(Path(binary), environment, namespace)


@pytest.fixture
def kubectl(kubeconfig: Path, _home: Path, namespace: str) -> Tool:
    """The real kubectl."""
    return _tool("kubectl", kubeconfig, _home, namespace)


@pytest.fixture
def helm(kubeconfig: Path, _home: Path, namespace: str) -> Tool:
    """The real helm."""
    return _tool("helm", kubeconfig, _home, namespace)
