"""What the chart repeats is equal to what it repeats; what it renders is valid Kubernetes."""

import re
import runpy
import subprocess

import pytest
import yaml

from fleetline import __version__
from sim_cluster import tools
from tests.chart import rendering as chart

VERSIONS = ["1.29", "1.37"]
VALUES = [
    pytest.param({}, id="defaults"),
    pytest.param(chart.EVERYTHING, id="everything on"),
    pytest.param(chart.LEAST, id="as little as possible"),
    pytest.param(
        {"watchNamespaces": ["chat", "code"], "podMonitor": {"enabled": True}}, id="namespaces"
    ),
]
FOREIGN = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, which is not part of Kubernetes."""


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_what_kubernetes_expects(values, version):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="108 MB of schemas")

    for document in chart.render(values):
        if document["kind"] not in FOREIGN:
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing_to_complain_about(values, tmp_path):
    given = tmp_path / "values.yaml"
    given.write_text(yaml.safe_dump(values))
    command = [str(tools.helm()), "lint", "--strict", str(chart.CHART), "--values", str(given)]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_definitions_in_the_chart_are_the_very_ones():
    for original in (chart.ROOT / "crds").glob("*.yaml"):
        copy = chart.CHART / "files" / "crds" / original.name

        assert copy.read_bytes() == original.read_bytes()


def test_rendering_adds_labels_and_the_policy_and_changes_nothing_else():
    for rendered in chart.of_kind(chart.render(), "CustomResourceDefinition"):
        plural = rendered["spec"]["names"]["plural"]
        original = yaml.safe_load((chart.ROOT / "crds" / f"{plural}.yaml").read_text("utf-8"))
        added = {"labels", "annotations"}
        rendered["metadata"] = {
            name: value for name, value in rendered["metadata"].items() if name not in added
        }

        assert rendered == original


def test_the_table_of_values_is_what_the_script_writes():
    script = runpy.run_path(str(chart.ROOT / "charts" / "reference.py"))

    assert script["outdated"]() == {}


def test_every_value_says_what_it_does():
    script = runpy.run_path(str(chart.ROOT / "charts" / "reference.py"))
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text("utf-8"))
    described = {value.path for value in script["values"]()}

    assert {path for path in leaves(values) if not covered(path, described)} == set()


def test_the_application_has_the_version_of_the_package():
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text("utf-8"))

    assert about["appVersion"] == __version__


def test_the_examples_in_the_annotations_are_those_of_the_definitions():
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text("utf-8"))["annotations"]
    named = {d["name"] for d in yaml.safe_load(about["artifacthub.io/crds"])}
    examples = yaml.safe_load(about["artifacthub.io/crdsExamples"])
    minimal = (chart.ROOT / "crds" / "examples" / "minimal.yaml").read_text("utf-8")

    assert named == {path.stem + ".fleetline.dev" for path in (chart.ROOT / "crds").glob("*.yaml")}
    assert examples[0] == yaml.safe_load(minimal)


def test_no_template_names_a_registry_or_a_path_of_a_host():
    text = chart.text(chart.EVERYTHING)

    assert not re.search(r"(ghcr|quay|docker|gcr)\.io", text)
    assert "hostPath" not in text


def leaves(tree, path=""):
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def covered(path, described):
    return any(path == one or path.startswith(f"{one}.") for one in described)
