"""The resources that the server knows: built-in ones from `facts.json`, custom ones from CRDs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from sim_cluster.api.errors import Json

FACTS = Path(__file__).parent / "builtin" / "facts.json"

WITH_GENERATION = frozenset(
    {
        "pods", "replicationcontrollers", "podtemplates", "controllerrevisions", "daemonsets",
        "deployments", "replicasets", "statefulsets", "cronjobs", "jobs", "poddisruptionbudgets",
        "ingressclasses", "ingresses", "networkpolicies", "endpointslices", "priorityclasses",
        "customresourcedefinitions", "mutatingwebhookconfigurations", "csidrivers",
        "validatingwebhookconfigurations", "validatingadmissionpolicies",
        "validatingadmissionpolicybindings", "horizontalpodautoscalers",
    }
)  # fmt: skip
"""Built-in kinds whose objects carry `metadata.generation`."""

NOT_SERVED = frozenset({"autoscaling/v1"})
"""Group versions whose schemas are needed (Scale) and which are not served themselves."""

NOT_STORED = frozenset({"bindings", "componentstatuses"})
"""Built-in resources that are left out: clients get 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """A part of an object with its own URL."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource in one version: its names, its verbs and the shape of its objects."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    is_namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    schema: Json | None = None
    schema_name: str = ""
    has_generation: bool = False
    custom: Json | None = None
    """The CRD version entry of a custom resource; None for a built-in one."""

    @property
    def group_version(self) -> str:
        """`group/version`, or the version alone for the legacy group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_key(self) -> tuple[str, str]:
        """Which collection holds the objects; both kinds of Event share one."""
        if self.plural == "events" and self.custom is None:
            return ("", "events")
        return (self.group, self.plural)


@lru_cache(maxsize=1)
def facts() -> Json:
    """The extracted facts, read once."""
    loaded: Json = orjson.loads(FACTS.read_bytes())
    return loaded


def schema_of(name: str) -> Json:
    """The schema of a built-in type by its full name."""
    schema: Json = facts()["schemas"][name]
    return schema


@lru_cache(maxsize=1)
def _schema_names() -> dict[tuple[str, str, str], str]:
    names = {}
    for name, schema in facts()["schemas"].items():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) == 1:
            names[(kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"])] = name
    return names


def schema_name(group: str, version: str, kind: str) -> str:
    """The full name of the schema of a built-in kind."""
    return _schema_names().get((group, version, kind), "")


def _split(group_version: str) -> tuple[str, str]:
    group, _, version = group_version.rpartition("/")
    return group, version


def _subresource(entry: Json) -> Subresource:
    group, version = _split(entry["groupVersion"])
    return Subresource(
        name=entry["name"].split("/", 1)[1],
        kind=entry["kind"],
        group=entry.get("group", group),
        version=entry.get("version", version),
        verbs=tuple(entry["verbs"]),
    )


def _builtin(entry: Json, subresources: Mapping[str, Subresource]) -> Resource:
    group, version = _split(entry["groupVersion"])
    name = schema_name(group, version, entry["kind"])
    return Resource(
        group=group,
        version=version,
        plural=entry["name"],
        singular=entry["singularName"],
        kind=entry["kind"],
        is_namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=subresources,
        schema=schema_of(name),
        schema_name=name,
        has_generation=entry["name"] in WITH_GENERATION,
    )


@lru_cache(maxsize=1)
def builtin_resources() -> tuple[Resource, ...]:
    """All built-in resources that are served."""
    entries: list[Json] = facts()["resources"]
    entries = [entry for entry in entries if entry["groupVersion"] not in NOT_SERVED]
    parts: dict[tuple[str, str], dict[str, Subresource]] = {}
    for entry in entries:
        if "/" in entry["name"]:
            key = (entry["groupVersion"], entry["name"].split("/", 1)[0])
            part = _subresource(entry)
            parts.setdefault(key, {})[part.name] = part
    return tuple(
        _builtin(entry, parts.get((entry["groupVersion"], entry["name"]), {}))
        for entry in entries
        if "/" not in entry["name"] and entry["name"] not in NOT_STORED
    )


class Registry:
    """Finds resources by their URL or by their kind, and learns custom ones."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self.revision = 0
        for resource in builtin_resources():
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve a resource from now on."""
        self._by_path[(resource.group, resource.version, resource.plural)] = resource
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        """Serve a custom resource no more."""
        keys = [key for key in self._by_path if key[0] == group and key[2] == plural]
        for key in keys:
            del self._by_path[key]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a URL."""
        return self._by_path.get((group, version, plural))

    def versions(self, group: str, plural: str) -> list[Resource]:
        """A resource in all its versions."""
        return [r for r in self._by_path.values() if r.group == group and r.plural == plural]

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._by_path.values()))

    def groups(self) -> dict[str, list[str]]:
        """Served versions of each group, the preferred first."""
        found: dict[str, list[str]] = {}
        for resource in self._by_path.values():
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return {group: sorted(versions, key=version_priority) for group, versions in found.items()}


def version_priority(version: str) -> tuple[Any, ...]:
    """Sort key that puts v2 before v1 before v1beta1 before v1alpha1."""
    digits = version.removeprefix("v")
    for rank, stage in enumerate(("beta", "alpha"), start=1):
        if stage in digits:
            major, _, minor = digits.partition(stage)
            return (rank, -int(major or 0), -int(minor or 0), version)
    return (0, -int(digits), 0, version) if digits.isdigit() else (3, 0, 0, version)
