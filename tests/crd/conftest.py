"""The cluster under test, by `SIM_BACKEND`, and the real kubectl."""

import json
import os
import subprocess
import time
import uuid

import pytest
import yaml

from sim_cluster import tools
from tests.crd import definitions as crd
from tests.crd.backend import running_api

PATIENCE_S = 60.0


class Kubectl:
    """The real kubectl against the cluster under test."""

    def __init__(self, kubeconfig, home):
        self._command = [str(tools.kubectl()), "--kubeconfig", str(kubeconfig)]
        self._environment = {**os.environ, "HOME": str(home), "KUBECACHEDIR": str(home / "cache")}

    def __call__(self, *arguments, stdin=None):
        """Run it; return the exit code and what it printed."""
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    def create(self, document):
        """Ask the API server, without storing anything, whether it accepts an object."""
        text = document if isinstance(document, str) else json.dumps(document)
        return self("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)

    def applied(self, document, namespace):
        """Apply an object and return it as stored."""
        text = yaml.safe_dump(document)
        code, output = self("apply", "--namespace", namespace, "-f", "-", stdin=text)
        assert code == 0, output
        reference = (document["kind"], document["metadata"]["name"])
        return self.json("get", *reference, "--namespace", namespace)

    def json(self, *arguments):
        """Run it with JSON output; return what it says."""
        code, output = self(*arguments, "--output", "json")
        assert code == 0, output
        return json.loads(output)


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kubectl")
    with running_api(folder) as kubeconfig:
        run = Kubectl(kubeconfig, folder)
        files = [f"{crd.CRDS}/{plural}.yaml" for plural in crd.DEFINITIONS]
        code, output = run("apply", "--server-side", "-f", files[0], "-f", files[1])
        assert code == 0, output
        names = [f"customresourcedefinition/{plural}.fleetline.dev" for plural in crd.DEFINITIONS]
        ends_s = time.monotonic() + PATIENCE_S
        code, output = 1, ""
        while code and time.monotonic() < ends_s:  # kubectl refuses one without any condition yet
            code, output = run("wait", "--for=condition=Established", "--timeout=30s", *names)
        assert code == 0, output
        yield run


@pytest.fixture
def namespace(kubectl):
    """A namespace of the test's own."""
    name = f"crd-{uuid.uuid4().hex[:8]}"
    code, output = kubectl("create", "namespace", name)
    assert code == 0, output
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
