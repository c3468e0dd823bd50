"""The image holds what the operator needs, pinned as it was tested, and starts without the rest."""

import re
import subprocess
import sys
import tomllib

from tests.chart import rendering as chart

OPERATOR = chart.ROOT / "operator"
DOCKERFILE = (OPERATOR / "Dockerfile").read_text("utf-8")
NOT_IN_THE_IMAGE = (
    *("sim_cluster", "numba", "cel_expr_python", "cryptography", "jsonschema", "google.protobuf"),
    *("plotly", "matplotlib", "plotext", "ray", "pytest", "hypothesis"),
)
REFUSING_IMPORTS = f"""
import sys
for name in {NOT_IN_THE_IMAGE}:
    sys.modules[name] = None
sys.argv = ["fleetline", "--help"]
from fleetline.entrypoints import cli
cli.main()
"""


def pins(path):
    """What a lock file pins: (name, version, hashes)."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[a-z]", line)]
    return {
        (line.split("==")[0], re.split(r"[ ;]", line.split("==")[1])[0]): frozenset(
            re.findall(r"--hash=(\S+)", line)
        )
        for line in lines
    }


def test_the_image_is_pinned_to_what_the_tests_ran_with():
    image, tested = pins(OPERATOR / "requirements.lock"), pins(chart.ROOT / "requirements.lock")

    assert image.items() <= tested.items()
    assert all(image.values())


def test_the_image_has_every_dependency_of_the_package():
    project = tomllib.loads((chart.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[^A-Za-z0-9-]", one)[0].lower() for one in project["dependencies"]}

    assert wanted <= {name for name, _ in pins(OPERATOR / "requirements.lock")}


def test_the_command_line_starts_without_what_the_image_lacks():
    done = subprocess.run(
        [sys.executable, "-c", REFUSING_IMPORTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


def test_the_image_runs_as_the_user_of_the_chart():
    pod = chart.one(chart.render(), "Deployment")["spec"]["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]

    assert f"USER {user}:{user}" in DOCKERFILE
    assert "PYTHONDONTWRITEBYTECODE=1" in DOCKERFILE


def test_the_image_is_built_in_stages_from_hashes_alone():
    assert len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 2
    assert "--require-hashes" in DOCKERFILE
    assert "--only-binary :all:" in DOCKERFILE
