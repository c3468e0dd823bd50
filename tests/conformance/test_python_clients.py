"""The official Python client, both ways, and an operator on kopf."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import aio, client, config, watch

from tests.conformance.client import Client
from tests.conformance.conftest import eventually
from tests.conformance.manifests import GROUP, config_map, deployment, widget

# These parts of the client have no types.
CONFIG: Any = config
AIO_CONFIG: Any = aio.config
WATCH: Any = watch

OPERATOR = f"""
import kopf

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "{GROUP}/hold"
    settings.posting.enabled = True

@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)

@kopf.on.create("{GROUP}", "v1", "widgets")
def created(patch, spec, body, **_):
    patch.status["phase"] = "Created-" + spec["color"]
    kopf.info(body, reason="Made", message="made by kopf")

@kopf.on.update("{GROUP}", "v1", "widgets", field="spec.color")
def updated(patch, spec, **_):
    patch.status["phase"] = "Updated-" + spec["color"]

@kopf.on.delete("{GROUP}", "v1", "widgets")
def deleted(**_):
    pass
"""


@pytest.fixture
def sync_api(kubeconfig: Path) -> Any:
    made = CONFIG.new_client_from_config(str(kubeconfig))
    yield made
    made.close()


def test_the_client_writes_and_reads(sync_api: Any, namespace: str) -> None:
    v1: Any = client.CoreV1Api(sync_api)

    v1.create_namespaced_config_map(namespace, config_map())
    found = v1.read_namespaced_config_map("c", namespace)
    listed = v1.list_namespaced_config_map(namespace, field_selector="metadata.name=c")

    assert found.data == {"a": "1"}
    assert [item.metadata.name for item in listed.items] == ["c"]
    assert listed.metadata.resource_version


def test_the_client_gets_a_readable_refusal(sync_api: Any, namespace: str) -> None:
    v1: Any = client.CoreV1Api(sync_api)

    with pytest.raises(client.ApiException) as caught:
        v1.read_namespaced_config_map("none", namespace)

    assert caught.value.status == 404
    assert "not found" in str(caught.value.body)


def test_the_client_reads_and_patches_a_scale(sync_api: Any, namespace: str) -> None:
    apps: Any = client.AppsV1Api(sync_api)
    apps.create_namespaced_deployment(namespace, deployment(replicas=0))

    scale = apps.read_namespaced_deployment_scale("d", namespace)
    body = {"spec": {"replicas": 2}}
    patched = apps.patch_namespaced_deployment_scale("d", namespace, body)

    assert scale.spec.replicas in (0, None)
    assert patched.spec.replicas == 2


def test_the_client_watches(sync_api: Any, api: Client, namespace: str, widgets: str) -> None:
    custom: Any = client.CustomObjectsApi(sync_api)
    listed = custom.list_namespaced_custom_object(GROUP, "v1", namespace, "widgets")
    version = listed["metadata"]["resourceVersion"]
    api.post(widgets, widget("one"))
    api.post(widgets, widget("two"))

    stream = WATCH.Watch().stream(
        custom.list_namespaced_custom_object, GROUP, "v1", namespace, "widgets",
        resource_version=version, timeout_seconds=1,
    )  # fmt: skip

    assert [event["object"]["metadata"]["name"] for event in stream] == ["one", "two"]


async def test_the_asynchronous_client_writes_and_watches(
    kubeconfig: Path, api: Client, namespace: str, widgets: str
) -> None:
    made = await AIO_CONFIG.new_client_from_config(str(kubeconfig))
    async with made as session:
        custom: Any = aio.client.CustomObjectsApi(session)
        await custom.create_namespaced_custom_object(GROUP, "v1", namespace, "widgets", widget())
        patched = await custom.patch_namespaced_custom_object_status(
            GROUP, "v1", namespace, "widgets", "w", {"status": {"phase": "Up"}},
            _content_type="application/merge-patch+json",
        )  # fmt: skip
        listed = await custom.list_namespaced_custom_object(GROUP, "v1", namespace, "widgets")

    assert patched["status"] == {"phase": "Up"}
    assert len(listed["items"]) == 1


@pytest.fixture
def operator(kubeconfig: Path, namespace: str, widgets: str, tmp_path: Path) -> Any:
    source = tmp_path / "operator_to_test.py"
    source.write_text(OPERATOR)
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", "-n", namespace, "--standalone", str(source)],
        env={"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path), "PATH": ""},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    time.sleep(0.1)
    yield process
    process.terminate()
    process.wait(timeout=20)
    log.close()


def test_an_operator_on_kopf_follows_an_object(
    operator: Any, api: Client, namespace: str, widgets: str
) -> None:
    def phase() -> str:
        found = api.get(f"{widgets}/w").body
        return str(found.get("status", {}).get("phase"))

    api.post(widgets, widget())
    eventually(lambda: phase() == "Created-red", 30)
    api.patch(f"{widgets}/w", {"spec": {"color": "blue"}})
    eventually(lambda: phase() == "Updated-blue", 30)
    held = api.get(f"{widgets}/w").body["metadata"]["finalizers"]
    api.delete(f"{widgets}/w")
    eventually(lambda: api.get(f"{widgets}/w").code == 404, 30)

    assert held == [f"{GROUP}/hold"]
    events = f"/api/v1/namespaces/{namespace}/events"
    eventually(lambda: "made by kopf" in str(api.get(events).body), 10)
    assert operator.poll() is None
