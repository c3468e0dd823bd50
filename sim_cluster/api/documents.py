"""Documents that describe the server itself, by their path."""

from typing import Any

from sim_cluster.api import discovery, openapi
from sim_cluster.api.errors import Json
from sim_cluster.api.resources import Registry

_JSON = "application/json"


def find(registry: Registry, path: str, *, accept: str, address: str) -> tuple[str, Any] | None:
    """The content type and the document of a path; None when there is none."""
    first = accept.partition(",")[0]
    if path in {"/api", "/apis"} and f"g={discovery.AGGREGATED}" in first:
        version = "v2" if "v=v2;" in first + ";" else "v2beta1"
        document = discovery.aggregated(registry, is_legacy=path == "/api", version=version)
        kind = f"{_JSON};g={discovery.AGGREGATED};v={version};as=APIGroupDiscoveryList"
        return kind, document
    parts = [part for part in path.split("/") if part]
    found = _openapi(registry, parts) if parts[:1] == ["openapi"] else None
    found = found or _discovery(registry, parts, address)
    return None if found is None else (_JSON, found)


def _openapi(registry: Registry, parts: list[str]) -> Json | None:
    match parts[1:]:
        case ["v3"]:
            return openapi.paths(registry)
        case ["v3", "api", version]:
            return openapi.document(registry, "", version)
        case ["v3", "apis", group, version]:
            return openapi.document(registry, group, version)
    return None


def _discovery(registry: Registry, parts: list[str], address: str) -> Json | None:
    match parts:
        case ["version"]:
            return discovery.VERSION
        case ["api"]:
            return discovery.legacy_versions(address)
        case ["apis"]:
            return discovery.group_list(registry)
        case ["apis", group]:
            return discovery.api_group(registry, group)
        case ["api" | "apis", *group, version]:
            return discovery.resource_list(registry, "/".join(group), version)
    return None
