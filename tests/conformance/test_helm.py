"""The real helm: a release from install to uninstall."""

from pathlib import Path

import pytest

from tests.conformance.client import Tool

CHART = """
apiVersion: v2
name: check
version: 0.1.0
appVersion: "1.0"
"""

TEMPLATES = """
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}
data:
  color: {{ .Values.color | quote }}
{{- if .Values.more }}
  more: "yes"
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: app
        image: registry.example/app:{{ .Values.tag }}
        ports: [{name: http, containerPort: 8080}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Release.Name }}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .Release.Name }}
spec:
  podSelector: {matchLabels: {app: {{ .Release.Name }}}}
  policyTypes: [Ingress]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .Release.Name }}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: {{ .Release.Name }}}}
"""


@pytest.fixture
def chart(tmp_path: Path) -> str:
    folder = tmp_path / "check"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(CHART)
    (folder / "values.yaml").write_text("color: red\ntag: 1\nmore: false\n")
    (folder / "templates" / "all.yaml").write_text(TEMPLATES)
    return str(folder)


def color(kubectl: Tool) -> str:
    return kubectl("get", "cm", "rel", "-o", "jsonpath={.data.color}").out


def test_a_release_is_installed(helm: Tool, kubectl: Tool, chart: str) -> None:
    installed = helm("install", "rel", chart, "--wait", "--timeout", "30s").out

    assert "STATUS: deployed" in installed
    assert color(kubectl) == "red"
    for kind in ("sa", "svc", "deploy", "role", "networkpolicy", "pdb"):
        assert kubectl("get", kind, "rel").code == 0


def test_a_release_is_upgraded_and_rolled_back(helm: Tool, kubectl: Tool, chart: str) -> None:
    helm("install", "rel", chart)
    helm("upgrade", "rel", chart, "--set", "color=blue,more=true,tag=2")
    after_upgrade = color(kubectl)
    helm("rollback", "rel", "1")

    assert after_upgrade == "blue"
    assert color(kubectl) == "red"
    assert kubectl("get", "cm", "rel", "-o", "jsonpath={.data.more}").out == ""
    history = helm("history", "rel", "-o", "json").json()
    assert [(entry["revision"], entry["status"]) for entry in history] == [
        (1, "superseded"), (2, "superseded"), (3, "deployed"),
    ]  # fmt: skip


def test_a_release_is_listed_and_shown(helm: Tool, chart: str) -> None:
    helm("install", "rel", chart, "--set", "color=blue")

    listed = helm("list", "-o", "json").json()
    values = helm("get", "values", "rel", "-o", "json").json()
    manifest = helm("get", "manifest", "rel").out

    assert [(entry["name"], entry["revision"]) for entry in listed] == [("rel", "1")]
    assert values == {"color": "blue"}
    assert "kind: NetworkPolicy" in manifest


def test_a_release_is_uninstalled(helm: Tool, kubectl: Tool, chart: str) -> None:
    helm("install", "rel", chart)

    helm("uninstall", "rel", "--wait", "--timeout", "30s")

    assert kubectl("get", "cm", "rel", ok=False).code == 1
    assert kubectl("get", "secrets", "-o", "name").out == ""


def test_what_another_owns_stops_an_upgrade(helm: Tool, kubectl: Tool, chart: str) -> None:
    helm("install", "rel", chart)
    kubectl("scale", "deploy/rel", "--replicas=3")

    done = helm("upgrade", "rel", chart, "--set", "tag=2", ok=False)

    assert done.code == 1
    assert "conflict" in done.err


def test_install_says_what_a_dry_run_would_do(helm: Tool, kubectl: Tool, chart: str) -> None:
    done = helm("install", "rel", chart, "--dry-run=server")

    assert "kind: Deployment" in done.out
    assert kubectl("get", "cm", "rel", ok=False).code == 1


def test_a_strict_error_of_a_chart_is_found(helm: Tool, chart: str) -> None:
    template = Path(chart) / "templates" / "all.yaml"
    template.write_text(template.read_text().replace("  replicas: 0", "  replcas: 0"))

    done = helm("install", "rel", chart, ok=False)

    assert done.code == 1
    assert "replcas" in done.err
