"""The operator itself, on the arguments and with the permissions that the chart gives it."""

import base64
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
import typer
import yaml

from fleetline.entrypoints.cli import build
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
def test_the_command_line_takes_the_arguments_of_the_chart(values):
    name, *arguments = chart.container(chart.render(values))["args"]

    commands = vars(typer.main.get_command(build()))["commands"]
    context = commands[name].make_context(name, arguments)

    assert context.params["prometheus_url"] == "http://prometheus-operated.monitoring.svc:9090"


def test_the_check_of_helm_test_finds_a_good_installation_good(release, tmp_path, answers):
    release.install({"watchNamespaces": [release.namespace]})
    environment = environment_of_check(release, tmp_path, answers)

    code, output = run_check(environment)

    assert code == 0, output
    assert output.split()[::2] == ["ok"] * 4
    assert output.split()[1::2] == ["definitions", "permissions", "operator", "prometheus"]


def test_the_check_of_helm_test_names_what_is_wrong(release, tmp_path, answers):
    release.install({"watchNamespaces": [release.namespace]})
    environment = environment_of_check(release, tmp_path, answers)
    elsewhere = f"http://127.0.0.1:{free_port()}"

    code, output = run_check(
        {**environment, "NAMESPACES": "kube-system", "PROMETHEUS": elsewhere, "METRICS": elsewhere}
    )

    assert code == 1
    assert [line.split(":")[0].split() for line in output.splitlines()] == [
        ["ok", "definitions"],
        ["FAILED", "permissions"],
        ["FAILED", "operator"],
        ["FAILED", "prometheus"],
    ]


def test_the_operator_works_with_the_permissions_of_the_chart(release, tmp_path):
    release.install({"watchNamespaces": [release.namespace]})
    here = ("--namespace", release.namespace)
    crds = ("crd/servingfleets.fleetline.dev", "crd/acceleratorprofiles.fleetline.dev")
    release.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)
    release.cluster.kubectl("apply", *here, "-f", str(MINIMAL))
    release.cluster.kubectl("apply", *here, "-f", "-", stdin=json.dumps(TARGET))
    kubeconfig = as_service_account(release, tmp_path)

    with running_operator(kubeconfig, release.namespace, tmp_path / "log") as log:
        fleet = wait_for_decision(release, log)

    assert fleet["status"]["decision"]["reason"]
    assert fleet["status"]["currentReplicas"] == 1
    assert "forbidden" not in log.read_text().lower()


class Answers(http.server.BaseHTTPRequestHandler):
    """Prometheus with one target, and the metrics of an operator."""

    def do_GET(self):
        is_query = self.path == "/api/v1/query?query=count(up)"
        result = json.dumps({"status": "success", "data": {"result": [1]}})
        self.send_response(200)
        self.end_headers()
        self.wfile.write((result if is_query else "fleetline_turn_duration_seconds 1").encode())

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def answers():
    """The address of a server that gives these answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def environment_of_check(release, folder, answers):
    """The environment that the chart gives the test pod, with the addresses of this machine."""
    objects = chart.render({"watchNamespaces": [release.namespace]}, namespace=release.namespace)
    pod = chart.one(objects, "Pod", "fleetline-test")["spec"]["containers"][0]
    config = yaml.safe_load(as_service_account(release, folder).read_text())
    api = config["clusters"][0]["cluster"]
    (folder / "token").write_text(config["users"][0]["user"]["token"])
    (folder / "ca.crt").write_bytes(base64.b64decode(api["certificate-authority-data"]))
    return {
        **{one["name"]: one["value"] for one in pod["env"]},
        "ACCOUNT": str(folder),
        "KUBERNETES": api["server"],
        "METRICS": f"{answers}/metrics",
        "PROMETHEUS": answers,
    }


def run_check(environment):
    """Run what the chart gives the test pod to run."""
    pod = chart.one(chart.render(), "Pod", "fleetline-test")["spec"]["containers"][0]
    assert pod["command"] == ["python", "-c"]
    done = subprocess.run(
        [sys.executable, "-c", *pod["args"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


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


def wait_for_decision(release, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        fleet = release.cluster.get("servingfleet", "chat", "--namespace", release.namespace)
        if fleet.get("status", {}).get("decision"):
            return fleet
        time.sleep(0.5)
    pytest.fail(f"the operator decided nothing within a minute; it said: {log.read_text()[-2000:]}")
