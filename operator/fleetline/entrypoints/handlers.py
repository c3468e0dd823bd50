"""
Where kopf comes in: it watches, logs in, and wakes the loop. Nothing here computes or writes.

kopf runs in a thread and event loop of its own. If it ends, it is started again; meanwhile the
periodic list of the loop misses nothing, it only sees changes a period later.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import kopf
import yaml

from fleetline.adapters.manifest import GROUP, PLURAL, VERSION
from fleetline.errors import FleetlineError

LOGGER: Final = logging.getLogger("fleetline")
TOKEN_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
CA_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
RESTART_S: Final = 5.0
CLOSING_S: Final = 0.1
"""TLS connections take a moment of the loop to close. [s]"""


def configured(settings: kopf.OperatorSettings) -> None:
    """Set what production taught: short time-outs, no peering, no scanning, no event posting."""
    settings.peering.standalone = True  # our own Lease elects
    settings.scanning.disabled = True  # no rights on CRDs and namespaces
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.networking.request_timeout = 10
    settings.networking.connect_timeout = 3
    settings.networking.error_backoffs = [0.5, 1, 2, 4, 8]
    settings.networking.trust_env = False
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.watching.reconnect_backoff = 1.0  # 0.1 would list again and again on 410
    settings.watching.chunk_size = 500
    settings.queueing.worker_limit = 50
    # A worker holds its place while it idles: at 5 s, a thousand fleets' first events would take
    # two minutes, and hold all later ones in memory meanwhile.
    settings.queueing.idle_timeout = 0.05
    settings.process.ultimate_exiting_timeout = 20
    settings.persistence.finalizer = f"{GROUP}/operator"  # in case one is ever added
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.execution.default_backoff = 15


def registry(wake: Callable[[], None], kubeconfig: Path | None) -> kopf.OperatorRegistry:
    """Every way the cluster can call us, on one screen."""
    handlers = kopf.OperatorRegistry()
    generations: dict[str, int] = {}

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return connection(kubeconfig)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=handlers)
    async def changed(uid: str, type: str | None, meta: Any, **_: Any) -> None:  # noqa: A002 - kopf's name
        """Wake the loop for a new, edited or deleted fleet; not for our own status writes."""
        generation = int(meta.get("generation") or 0)
        if type == "DELETED":
            generations.pop(uid, None)
        elif generations.get(uid) == generation:
            return
        else:
            generations[uid] = generation
        wake()

    return handlers


def connection(kubeconfig: Path | None) -> kopf.ConnectionInfo:
    """
    Read credentials as they are now: kopf asks again when they are refused.

    Raises
    ------
    kopf.LoginError
        If they cannot be read.
    """
    try:
        return _in_cluster() if kubeconfig is None else _from_file(kubeconfig)
    except (OSError, KeyError, StopIteration, yaml.YAMLError, TypeError) as error:
        raise kopf.LoginError(f"cannot read the Kubernetes credentials: {error}") from None


def _in_cluster() -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(
        server="https://kubernetes.default.svc",
        ca_path=str(CA_FILE),
        scheme="Bearer",
        token=TOKEN_FILE.read_text("utf-8").strip(),
    )


def _from_file(path: Path) -> kopf.ConnectionInfo:
    loaded = yaml.safe_load(path.read_text("utf-8"))
    context = _named(loaded["contexts"], loaded["current-context"])["context"]
    cluster = _named(loaded["clusters"], context["cluster"])["cluster"]
    user = _named(loaded["users"], context["user"])["user"] or {}
    token = user.get("token")
    if token is None and "tokenFile" in user:
        token = Path(user["tokenFile"]).read_text("utf-8").strip()
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_path=cluster.get("certificate-authority"),
        ca_data=cluster.get("certificate-authority-data"),
        insecure=cluster.get("insecure-skip-tls-verify"),
        scheme="Bearer" if token else None,
        token=token,
        certificate_path=user.get("client-certificate"),
        certificate_data=user.get("client-certificate-data"),
        private_key_path=user.get("client-key"),
        private_key_data=user.get("client-key-data"),
    )


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


class Watcher:
    """kopf in a thread, started again whenever it ends."""

    def __init__(
        self, wake: Callable[[], None], *, kubeconfig: Path | None, namespaces: tuple[str, ...]
    ) -> None:
        """Wake through `wake`, which is called from the watcher's thread."""
        self._wake = wake
        self._kubeconfig = kubeconfig
        self._namespaces = namespaces
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """End the watch; the thread is left behind if it does not end in time."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                asyncio.run(self._watch())
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever ends it, it starts again
                LOGGER.warning("the watch ended, and starts again: %s", error)
            self._stop.wait(RESTART_S)

    async def _watch(self) -> None:
        settings = kopf.OperatorSettings()
        configured(settings)
        with contextlib.suppress(FleetlineError):
            await kopf.operator(
                registry=registry(self._wake, self._kubeconfig),
                settings=settings,
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=list(self._namespaces),
                stop_flag=self._stop,
            )
        await asyncio.sleep(CLOSING_S)
