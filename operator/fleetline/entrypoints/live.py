"""A live cluster for commands that read one: which file, which namespace, one connection."""

import contextlib
import os
from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from kubernetes.aio import config as kubernetes_config

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.manifest import GROUP, PLURAL
from fleetline.adapters.snapshot import FLEETS
from fleetline.errors import FleetlineError, ManifestError

REQUEST_DEADLINE_S: Final = 15.0
"""A person waits longer than a turn of the operator may. [s]"""

IN_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the pod's own account.",
    ),
]


class Shown(StrEnum):
    """How a finding about a cluster is printed."""

    TABLE = "table"
    JSON = "json"


ShownOption = Annotated[Shown, typer.Option("--output", "-o", help="How to print the result.")]


def kubeconfig_of(given: Path | None) -> Path | None:
    """
    Find the file that kubectl would read; None inside a pod.

    Raises
    ------
    ManifestError
        If a file is named that is not there, or there is none and this is no pod.
    """
    if given is not None:
        if not given.is_file():
            raise ManifestError(f"--kubeconfig must be a file, got {str(given)!r}")
        return given
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    for path in (*(Path(name) for name in named if name), Path.home() / ".kube" / "config"):
        if path.is_file():
            return path
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise ManifestError(
            "--kubeconfig must be given where neither $KUBECONFIG nor ~/.kube/config names a "
            "cluster, got none"
        )
    return None


def namespace_of(kubeconfig: Path | None) -> str:
    """Namespace that kubectl would look in: the context's, the pod's own, or default."""
    if kubeconfig is None:
        return IN_POD.read_text("utf-8").strip() if IN_POD.is_file() else "default"
    reading: Any = kubernetes_config
    try:
        _, active = reading.list_kube_config_contexts(str(kubeconfig))
    except (kubernetes_config.ConfigException, OSError, TypeError) as error:
        raise FleetlineError(f"cannot read the kubeconfig file: {error}") from None
    return str(((active or {}).get("context") or {}).get("namespace") or "default")


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path | None) -> AsyncIterator[ApiClient]:
    """Yield a client for the length of a command."""
    api = ApiClient(kubeconfig, deadline_s=REQUEST_DEADLINE_S)
    await api.connect()
    try:
        yield api
    finally:
        await api.close()


async def read_fleet(api: ApiClient, namespace: str, name: str) -> dict[str, Any]:
    """
    Read one ServingFleet.

    Raises
    ------
    ManifestError
        If there is none of this name: the message lists those that exist.
    """
    try:
        return await api.get(f"{FLEETS}/namespaces/{namespace}/{PLURAL}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
    try:
        listed = [
            one["metadata"] async for one in api.pages(f"{FLEETS}/namespaces/{namespace}/{PLURAL}")
        ]
    except ApiError as error:
        if error.status != 404:
            raise
        raise ManifestError(
            f"the CustomResourceDefinition {PLURAL}.{GROUP} must be installed, got none: "
            "apply crds/"
        ) from None
    names = ", ".join(sorted(one["name"] for one in listed)) or "there are none"
    raise ManifestError(
        f"NAME must be a ServingFleet of namespace {namespace} ({names}), got {name!r}"
        f"{await _elsewhere(api, name)}"
    )


async def _elsewhere(api: ApiClient, name: str) -> str:
    """Say in which other namespaces there is a fleet of this name, if one may look."""
    try:
        found = [
            one["metadata"]["namespace"]
            async for one in api.pages(f"{FLEETS}/{PLURAL}")
            if one["metadata"]["name"] == name
        ]
    except ApiError:
        return ""
    return f"; namespace {', '.join(sorted(found))} has one" if found else ""
