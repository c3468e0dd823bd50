"""Which kinds the API server has, so that garbage and namespaces are collected for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_cluster.resources import Resource

if TYPE_CHECKING:
    from sim_cluster.api_client import ApiClient, Object

_NEEDED = {"list", "watch", "delete"}
# Events are many, belong to nothing, and go with their namespace; see `namespaces`.
_IGNORED = {("", "events"), ("events.k8s.io", "events")}


async def deletable_resources(client: ApiClient) -> list[Resource]:
    """List all kinds that can be listed, watched and deleted, each in its preferred version."""
    found = _resources("", "v1", await client.request("GET", "/api/v1"))
    for group in (await client.request("GET", "/apis"))["groups"]:
        preferred = group["preferredVersion"]["groupVersion"]
        listed = await client.request("GET", f"/apis/{preferred}")
        found += _resources(group["name"], preferred.rsplit("/", maxsplit=1)[-1], listed)
    return found


def _resources(group: str, version: str, listed: Object) -> list[Resource]:
    return [
        Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
        for entry in listed["resources"]
        if "/" not in entry["name"]
        and set(entry["verbs"]) >= _NEEDED
        and (group, entry["name"]) not in _IGNORED
    ]
