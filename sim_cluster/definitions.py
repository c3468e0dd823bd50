"""The CustomResourceDefinitions of `crds/`, applied to a simulated cluster."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from sim_cluster.api_client import APPLY_PATCH, ApiClient, Object
from sim_cluster.pods import condition
from sim_cluster.processes import StartError
from sim_cluster.resources import CUSTOM_RESOURCE_DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FOLDER = Path(__file__).resolve().parents[1] / "crds"
_TIMEOUT_S = 30.0
_POLL_S = 0.05


@contextlib.asynccontextmanager
async def applied_definitions(
    client: ApiClient, folder: Path = FOLDER, *, remove_at_end: bool
) -> AsyncIterator[None]:
    """Apply every definition and wait until it is served; at the end remove those that are new."""
    made = []
    for definition in _read(folder):
        name = definition["metadata"]["name"]
        known = await client.find(CUSTOM_RESOURCE_DEFINITIONS, None, name)
        if known is None:
            made.append(name)
        await client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            None,
            name,
            definition,
            content_type=APPLY_PATCH,
            query={"fieldManager": "sim-cluster", "force": "true"},
        )
    for definition in _read(folder):
        await _until_served(client, definition["metadata"]["name"])
    try:
        yield
    finally:
        for name in made if remove_at_end else ():
            await client.delete(CUSTOM_RESOURCE_DEFINITIONS, None, name)


def _read(folder: Path) -> list[Object]:
    documents = [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
    ]
    return [each for each in documents if each and each["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind]


async def _until_served(client: ApiClient, name: str) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline_s:
        definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)
        established = condition(definition, "Established")
        if established is not None and established["status"] == "True":
            return
        await asyncio.sleep(_POLL_S)
    raise StartError(f"{name} must be Established within {_TIMEOUT_S:g} s, got no such condition")
