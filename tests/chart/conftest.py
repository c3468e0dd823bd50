"""A cluster to install into, by `SIM_BACKEND`, and the real helm and kubectl."""

import json
import os
import subprocess
import uuid

import pytest

from sim_cluster import tools
from tests.chart import rendering as chart
from tests.crd.backend import running_api


class Cluster:
    """The cluster under test, seen through helm and kubectl."""

    def __init__(self, kubeconfig, home):
        self._environment = {
            **os.environ,
            "HOME": str(home),
            "KUBECACHEDIR": str(home / "cache"),
            "KUBECONFIG": str(kubeconfig),
        }

    def run(self, program, *arguments, stdin=None):
        """Run it; return the exit code and what it printed."""
        done = subprocess.run(
            [str(program), *arguments],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        return done.returncode, done.stdout + done.stderr

    def helm(self, *arguments, values=None):
        """Run helm, which has to succeed; return what it printed."""
        given = ("--values", "-") if values is not None else ()
        code, output = self.run(tools.helm(), *arguments, *given, stdin=json.dumps(values or {}))
        assert code == 0, output
        return output

    def kubectl(self, *arguments, stdin=None):
        """Run kubectl, which has to succeed; return what it printed."""
        code, output = self.run(tools.kubectl(), *arguments, stdin=stdin)
        assert code == 0, output
        return output

    def exists(self, *reference):
        """Whether an object is there."""
        return bool(self.kubectl("get", *reference, "--ignore-not-found", "--output", "name"))

    def get(self, *reference):
        """Return an object as stored."""
        return json.loads(self.kubectl("get", *reference, "--output", "json"))


class Release:
    """One release of the chart in a namespace of its own."""

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace
        self.name = "fleetline"

    def install(self, values=None):
        return self._apply("install", values)

    def upgrade(self, values=None):
        return self._apply("upgrade", values)

    def rollback(self, revision):
        return self.cluster.helm(
            "rollback", self.name, str(revision), "--namespace", self.namespace
        )

    def uninstall(self):
        return self.cluster.helm("uninstall", self.name, "--namespace", self.namespace)

    def history(self):
        output = self.cluster.helm(
            "history", self.name, "--namespace", self.namespace, "--output", "json"
        )
        return [(entry["revision"], entry["status"]) for entry in json.loads(output)]

    def deployment(self):
        return self.cluster.get("deployment", self.name, "--namespace", self.namespace)

    def _apply(self, verb, values):
        return self.cluster.helm(
            *(verb, self.name, str(chart.CHART), "--namespace", self.namespace),
            *("--take-ownership", "--force-conflicts"),
            values=values or {},
        )


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with running_api(folder) as kubeconfig:
        cluster = Cluster(kubeconfig, folder)
        yield cluster
        names = ("servingfleets.fleetline.dev", "acceleratorprofiles.fleetline.dev")
        cluster.kubectl("delete", "crd", *names, "--ignore-not-found", "--wait=false")


@pytest.fixture
def release(cluster):
    namespace = f"chart-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    release = Release(cluster, namespace)
    yield release
    cluster.run(tools.helm(), "uninstall", release.name, "--namespace", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
