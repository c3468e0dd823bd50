"""What the server offers: groups, versions and resources, plain and aggregated."""

from sim_cluster.api.errors import Json
from sim_cluster.api.resources import Registry, Resource, Subresource

VERSION: Json = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.2",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-11-01T00:00:00Z",
    "goVersion": "go1.26.8",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""The version whose behaviour is followed (`/version`)."""

AGGREGATED = "apidiscovery.k8s.io"


def _resource_entries(resource: Resource) -> list[Json]:
    entry: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return [entry, *(_subresource_entry(resource, s) for s in resource.subresources.values())]


def _subresource_entry(resource: Resource, sub: Subresource) -> Json:
    entry: Json = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.is_namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if (sub.group, sub.version) != (resource.group, resource.version):
        entry["group"], entry["version"] = sub.group, sub.version
    return entry


def resource_list(registry: Registry, group: str, version: str) -> Json | None:
    """The resources of one group and version; None when it does not exist."""
    found = [r for r in registry if r.group == group and r.version == version]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for resource in found for entry in _resource_entries(resource)],
    }


def _group(group: str, versions: list[str]) -> Json:
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def api_group(registry: Registry, group: str) -> Json | None:
    """One group."""
    versions = registry.groups().get(group)
    if not versions or not group:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def group_list(registry: Registry) -> Json:
    """All named groups."""
    groups = [_group(name, versions) for name, versions in registry.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def legacy_versions(address: str) -> Json:
    """The versions of the group without a name."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _gvk(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(resource: Resource) -> Json:
    entry: Json = {
        "resource": resource.plural,
        "responseKind": _gvk(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _gvk(sub.group, sub.version, sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return entry


def aggregated(registry: Registry, *, is_legacy: bool, version: str) -> Json:
    """All groups with all their resources in one document."""
    items = []
    for name, versions in registry.groups().items():
        if (name == "") != is_legacy:
            continue
        entries = [
            {
                "version": each,
                "freshness": "Current",
                "resources": [
                    _aggregated_resource(r)
                    for r in registry
                    if r.group == name and r.version == each
                ],
            }
            for each in versions
        ]
        metadata = (
            {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None}
        )
        items.append({"metadata": metadata, "versions": entries})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED}/{version}",
        "metadata": {},
        "items": items,
    }
