"""The real tools: found, runnable, and honest when they cannot be had."""

import subprocess
import sys

import pytest

from sim_cluster import tools
from sim_cluster.controlplane import build, roles


@pytest.mark.parametrize(
    ("name", "arguments", "version"),
    [
        pytest.param("kubectl", ["version", "--client"], "v1.37.1", id="kubectl"),
        pytest.param("helm", ["version", "--short"], "v4.3.1", id="helm"),
        pytest.param("prometheus", ["--version"], "prometheus, version", id="prometheus"),
        pytest.param("promtool", ["--version"], "promtool, version", id="promtool"),
    ],
)
def test_the_path_that_is_printed_is_the_program(name, arguments, version):
    command = [sys.executable, "-m", "sim_cluster.tools", name]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    printed = subprocess.run([path, *arguments], capture_output=True, text=True, check=True)

    assert version in printed.stdout + printed.stderr


def test_an_unknown_tool_is_refused(capsys):
    assert tools.main(["kubectx"]) == 2
    assert "program must be one of kubectl, helm" in capsys.readouterr().err


def test_the_control_plane_is_cached_outside_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    path = build.cached_path()

    assert path.is_relative_to(tmp_path / "fleetline" / "controlplane")
    assert path == build.cached_path()


def test_without_go_the_way_out_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(build.BuildError, match=r"no `go` on PATH.*KUBEBUILDER_ASSETS"):
        build.binary(print)


def test_assets_without_an_api_server_are_refused(tmp_path):
    (tmp_path / "etcd").touch()

    with pytest.raises(FileNotFoundError, match="without kube-apiserver"):
        roles.assets(tmp_path)


def test_assets_may_lack_controllers(tmp_path):
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch()

    programs = roles.assets(tmp_path)

    assert not programs.is_complete
