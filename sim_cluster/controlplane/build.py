"""Build the control plane once, and find it again.

The program depends on `main.go`, `go.mod`, `go.sum` and the flags below, so their hash is its key
in a cache outside the checkout. A first build takes about ten minutes on two cores; `python -m
sim_cluster.controlplane.build` does it ahead of time and prints where the program lies.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sim_cluster import signals
from sim_cluster.file_lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(__file__).parent
KUBERNETES_VERSION = "1.37.2"
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# Without these `kubectl version` fails, and Helm reads a nonsense `.Capabilities.KubeVersion`.
_VERSION_VARIABLES = {
    "gitVersion": f"v{KUBERNETES_VERSION}",
    "gitMajor": KUBERNETES_VERSION.split(".", maxsplit=1)[0],
    "gitMinor": KUBERNETES_VERSION.split(".")[1],
    "gitTreeState": "clean",
    "gitCommit": "from-go-modules",
    "buildDate": "1970-01-01T00:00:00Z",  # the same inputs give the same program
}
_GO_FLAGS = "-mod=readonly -buildvcs=false"
_PROGRESS_PERIOD_S = 10.0
_POLL_S = 0.2


class BuildError(RuntimeError):
    """The control plane cannot be built here."""


def binary(report: Callable[[str], None] = print, given_up: threading.Event | None = None) -> Path:
    """Find the program in the cache, or build it there; `report` gets a line now and then.

    Setting `given_up`, from another thread, ends the build with an error and without a trace.
    """
    program = cached_path()
    if program.exists():
        return program
    given_up = given_up or threading.Event()
    with locked(program.parent.with_suffix(".lock"), given_up=given_up):
        if not program.exists():
            _build(program, report, given_up)
    return program


def cached_path() -> Path:
    """Where the program for these sources and flags lies, or would lie."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "fleetline" / "controlplane" / _key() / "controlplane"


def _key() -> str:
    content = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        content.update((SOURCE / name).read_bytes())
    content.update(" ".join([*_build_flags(), _GO_FLAGS, platform.machine()]).encode())
    return content.hexdigest()[:20]


def _build_flags() -> list[str]:
    variables = [
        f"-X {package}.{name}={value}"
        for package in _VERSION_PACKAGES
        for name, value in _VERSION_VARIABLES.items()
    ]
    return ["-trimpath", "-ldflags", " ".join(["-s", "-w", *variables])]


def _build(program: Path, report: Callable[[str], None], given_up: threading.Event) -> None:
    if shutil.which("go") is None:
        raise BuildError(
            "cannot build the control plane: there is no `go` on PATH; install Go 1.26, or set "
            "KUBEBUILDER_ASSETS, or use --backend memory or kubeconfig"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        unfinished = Path(folder) / program.name
        _compile(unfinished, report, given_up)
        unfinished.rename(program)


def _compile(unfinished: Path, report: Callable[[str], None], given_up: threading.Event) -> None:
    # The compiler's own temporary files go with ours, even if it is killed.
    room = {"GOTMPDIR": str(unfinished.parent)}
    environment = {**os.environ, **room, "CGO_ENABLED": "0", "GOFLAGS": _GO_FLAGS}
    report("building the control plane from Go modules (once; about ten minutes on two cores)")
    packages = _package_count(environment)
    command = ["go", "build", "-v", *_build_flags(), "-o", str(unfinished), "."]
    started_s, last_s, compiled, last_lines = time.monotonic(), 0.0, 0, [""]
    with _own_group(command, environment, given_up) as process:
        for line in process.stderr or ():
            last_lines = [*last_lines[-20:], line]
            compiled += "/" in line and " " not in line.strip()
            if (passed_s := time.monotonic() - started_s) - last_s >= _PROGRESS_PERIOD_S:
                last_s = passed_s
                report(
                    f"control plane: {compiled} of at most {packages} packages, {passed_s:.0f} s"
                )
        if process.wait() != 0:
            raise BuildError(f"cannot build the control plane: {''.join(last_lines).strip()}")
    report(f"control plane built in {time.monotonic() - started_s:.0f} s")


def _package_count(environment: dict[str, str]) -> int:
    command = ["go", "list", "-deps", "."]
    listed = subprocess.run(
        command, cwd=SOURCE, env=environment, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        said = "\n".join(listed.stderr.strip().splitlines()[-20:])
        raise BuildError(f"cannot fetch the control plane's Go modules: {said}")
    return len(listed.stdout.splitlines())


@contextlib.contextmanager
def _own_group(
    command: list[str], environment: dict[str, str], given_up: threading.Event
) -> Iterator[subprocess.Popen[str]]:
    """Run in a process group of its own: the compilers end with us when we are interrupted."""
    process = subprocess.Popen(
        command,
        cwd=SOURCE,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_S):
            if given_up.is_set():
                _kill_group(process)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield process
    finally:
        over.set()
        watcher.join()
        _kill_group(process)
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    """Build ahead of time and print where the program lies; a signal ends the compilers as well."""
    try:
        with signals.interrupting():
            print(binary(lambda line: print(line, file=sys.stderr, flush=True)))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
