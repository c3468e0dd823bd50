"""`python -m sim_cluster up`: everything comes up, and nothing stays behind, however it ends.

A child is known by the temporary folder that it was given, so other clusters on this machine do not
matter. `SIM_BACKEND=controlplane` tries the same with the real control plane.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from sim_cluster import tools
from tests.sim_cluster.launch.leftovers import is_open, processes_that_mention

BACKEND = os.environ.get("SIM_BACKEND", "memory")
READY = re.compile(r"ready kubeconfig=(?P<kubeconfig>\S+) prometheus=(?P<prometheus>\S+)\n")
ROOT = Path(__file__).resolve().parents[3]


class Up:
    """The command, with a temporary folder of its own."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        command = [sys.executable, "-m", "sim_cluster", "up", "--backend", BACKEND, *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until_ready(self):
        printed = ""
        for line in self.process.stdout or ():
            printed += line
            if found := READY.fullmatch(line):
                return found
        raise AssertionError(printed)

    def stop(self, number=signal.SIGTERM):
        """End it; SIGTERM, because jobs in the background of a shell start with SIGINT ignored."""
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def leftovers(self):
        """Files in the folder, and processes that were told of it or descend from it."""
        files = [str(path) for path in self.folder.rglob("*")]
        return files + processes_that_mention(str(self.folder))


@pytest.fixture
def up(tmp_path):
    tools.prometheus()  # fetched before the clock runs
    started = []

    def start(*arguments):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Up(folder, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        if each.process.stdout:
            each.process.stdout.close()


def test_kubectl_works_with_what_it_prints(up, tmp_path):
    ready = up("--no-operator").until_ready()

    command = [tools.kubectl(), "--kubeconfig", ready["kubeconfig"], "get", "nodes", "-o", "json"]
    environment = os.environ | {"KUBECACHEDIR": str(tmp_path / "cache")}
    nodes = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    names = [each["metadata"]["name"] for each in json.loads(nodes.stdout)["items"]]
    assert names == [f"sim-h100-sxm-{number}" for number in range(4)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_is_left(up, number):
    command = up("--no-operator")
    ready = command.until_ready()
    server = yaml.safe_load(Path(ready["kubeconfig"]).read_text())["clusters"][0]["cluster"]

    code = command.stop(number)

    assert code == 0
    assert command.leftovers() == []
    assert not is_open(server["server"])
    assert not is_open(ready["prometheus"])


@pytest.mark.parametrize("after_s", [0.3, 0.8, 1.2, 1.6, 2.0, 3.0])
def test_a_signal_in_the_middle_of_the_start_leaves_nothing(up, after_s):
    command = up("--no-operator")
    time.sleep(after_s)

    command.stop()

    assert command.leftovers() == []


def test_a_second_signal_does_not_cut_the_tidying_short(up):
    command = up("--no-operator")
    command.until_ready()

    command.process.send_signal(signal.SIGTERM)
    command.stop()

    assert command.leftovers() == []


def test_children_end_even_if_it_is_killed(up):
    command = up("--no-operator")
    command.until_ready()

    command.stop(signal.SIGKILL)

    deadline_s = time.monotonic() + 10
    while processes_that_mention(str(command.folder)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert processes_that_mention(str(command.folder)) == []


def test_nodes_come_from_the_file(up, tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text("- {accelerator: H100-SXM, count: 1, accelerators_per_node: 4, name: small}\n")

    ready = up("--no-operator", "--nodes", str(file)).until_ready()

    command = [tools.kubectl(), "--kubeconfig", ready["kubeconfig"], "get", "node", "small-0"]
    path = "jsonpath={.status.allocatable.nvidia\\.com/gpu}"
    environment = os.environ | {"KUBECACHEDIR": str(tmp_path / "cache")}
    gpus = subprocess.run([*command, "-o", path], capture_output=True, check=True, env=environment)
    assert gpus.stdout == b"4"


def test_a_file_with_an_unknown_field_is_refused(up, tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text("- {accelerator: H100-SXM, size: 4}\n")

    command = up("--no-operator", "--nodes", str(file))

    printed = command.process.stdout.read()
    assert command.process.wait(30) == 1
    assert "nodes.yaml[0] must have fields of" in printed
    assert command.leftovers() == []


def test_prometheus_finds_the_pods(up, tmp_path):
    ready = up("--no-operator", "--startup", "0.1s").until_ready()
    pod = tmp_path / "pod.yaml"
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.21.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "ports": [{"name": "http", "containerPort": 8000}],
    }
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "chat-0"}}
    pod.write_text(yaml.safe_dump(manifest | {"spec": {"containers": [container]}}))
    command = [tools.kubectl(), "--kubeconfig", ready["kubeconfig"], "apply", "-f", pod]
    environment = os.environ | {"KUBECACHEDIR": str(tmp_path / "cache")}

    subprocess.run(command, check=True, capture_output=True, env=environment)

    labels = wait_for_series(ready["prometheus"], "vllm:num_requests_running")
    assert labels["namespace"] == "default"
    assert labels["pod"] == "chat-0"
    assert labels["container"] == "engine"


def wait_for_series(prometheus, name):
    deadline_s = time.monotonic() + 40
    while time.monotonic() < deadline_s:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?query={name}") as answer:
            result = json.load(answer)["data"]["result"]
        if result:
            return result[0]["metric"]
        time.sleep(0.2)
    raise AssertionError(f"no series {name}")


@pytest.mark.controlplane
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here")
def test_a_signal_in_the_middle_of_the_build_leaves_only_the_lock(up, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "go"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    command = up("--no-operator", "--backend", "controlplane")
    assert "building" in command.process.stdout.readline()

    command.stop()

    assert command.leftovers() == []
    assert [path.suffix for path in cache.rglob("*") if path.is_file()] == [".lock"]
