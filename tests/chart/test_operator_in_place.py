"""The operator itself, on the arguments and with the permissions that the chart gives it."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
import typer
import yaml

from fleetline.entrypoints.cli import COMMANDS, build
from tests.chart import rendering as chart

TARGET = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "chat"}},
        "template": {
            "metadata": {"labels": {"app": "chat"}},
            "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:latest"}]},
        },
    },
}
MINIMAL = chart.ROOT / "crds" / "examples" / "minimal.yaml"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param(chart.EVERYTHING, id="everything on"),
        pytest.param({"watchNamespaces": ["chat", "code"]}, id="two namespaces"),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_the_command_line_takes_the_arguments_of_the_chart(values, kind):
    objects = chart.render(values)
    pod = chart.one(objects, "Pod", "fleetline-test")["spec"]["containers"][0]
    name, *arguments = (chart.container(objects) if kind == "Deployment" else pod)["args"]
    if name not in COMMANDS:
        pytest.skip(f"this version has no command {name}")

    context = typer.main.get_command(build()).commands[name].make_context(name, arguments)

    assert context.params["prometheus_url"] == "http://prometheus-operated.monitoring.svc:9090"


def test_the_operator_works_with_the_permissions_of_the_chart(release, tmp_path):
    release.install({"watchNamespaces": [release.namespace]})
    here = ("--namespace", release.namespace)
    crds = ("crd/servingfleets.fleetline.dev", "crd/acceleratorprofiles.fleetline.dev")
    release.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)
    release.cluster.kubectl("apply", *here, "-f", str(MINIMAL))
    release.cluster.kubectl("apply", *here, "-f", "-", stdin=json.dumps(TARGET))
    kubeconfig = as_service_account(release, tmp_path)

    with running_operator(kubeconfig, release.namespace, tmp_path / "log") as log:
        fleet = wait_for_decision(release)

    assert fleet["status"]["decision"]["reason"]
    assert fleet["status"]["currentReplicas"] == 1
    assert "forbidden" not in log.read_text().lower()


def as_service_account(release, folder):
    """Write a kubeconfig with the token of the operator's ServiceAccount."""
    token = release.cluster.kubectl(
        "create", "token", release.name, "--namespace", release.namespace
    ).strip()
    config = yaml.safe_load(
        release.cluster.kubectl("config", "view", "--raw", "--minify", "--output", "yaml")
    )
    config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class running_operator:  # noqa: N801 - reads as a function
    """The real program, until the block ends."""

    def __init__(self, kubeconfig, namespace, log):
        self._log = log
        self._command = [
            *(sys.executable, "-m", "fleetline", "run", f"--namespace={namespace}"),
            *(f"--kubeconfig={kubeconfig}", f"--prometheus-url=http://127.0.0.1:{free_port()}"),
            *("--sync-period=2", "--metrics-port=0", "--health-port=0"),
            "--bind-address=127.0.0.1",
        ]

    def __enter__(self):
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": ""}
            )
        return self._log

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        finally:
            self._process.kill()


def free_port():
    """A port on which nobody answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_decision(release):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        fleet = release.cluster.get("servingfleet", "chat", "--namespace", release.namespace)
        if fleet.get("status", {}).get("decision"):
            return fleet
        time.sleep(0.5)
    pytest.fail("the operator decided nothing within a minute")
