"""CustomResourceDefinitions: checked, and turned into resources that are served at once."""

import re
from typing import Any

from sim_cluster.api.errors import Json, cause, invalid
from sim_cluster.api.objects import now_text
from sim_cluster.api.resources import Resource, Subresource
from sim_cluster.api.schema import cel
from sim_cluster.api.schema.structural import Node, custom_node

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean"})


def _names(crd: Json) -> Json:
    names: Json = crd["spec"]["names"]
    return names


def default_crd(crd: Json) -> None:
    """Defaults of a new CRD."""
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def crd_errors(crd: Json) -> list[Json]:
    """What is wrong with a CRD."""
    spec, names = crd["spec"], crd["spec"]["names"]
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    errors = []
    if crd["metadata"]["name"] != wanted:
        text = (
            f'Invalid value: "{crd["metadata"]["name"]}": must be spec.names.plural+"."+spec.group'
        )
        errors.append(cause("FieldValueInvalid", "metadata.name", text))
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        text = (
            f'Unsupported value: "{spec.get("scope", "")}": supported values: "Cluster",'
            ' "Namespaced"'
        )
        errors.append(cause("FieldValueNotSupported", "spec.scope", text))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "Invalid value: must have exactly one version marked as storage version"
        errors.append(cause("FieldValueInvalid", "spec.versions", text))
    for index, version in enumerate(versions):
        errors += _version_errors(version, f"spec.versions[{index}]")
    return errors


def _version_errors(version: Json, path: str) -> list[Json]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        text = "Required value: schemas are required"
        return [cause("FieldValueRequired", f"{path}.schema.openAPIV3Schema", text)]
    return _schema_errors(schema, f"{path}.schema.openAPIV3Schema", is_root=True)


def _schema_errors(schema: Any, path: str, *, is_root: bool = False) -> list[Json]:
    errors: list[Json] = []
    if not isinstance(schema, dict):
        return errors
    is_free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get(
        "x-kubernetes-int-or-string"
    )
    kind = schema.get("type", "")
    if not kind and not is_free:
        text = "Required value: must not be empty for specified object fields"
        if is_root:
            text = "Required value: must not be empty at the root"
        errors.append(cause("FieldValueRequired", f"{path}.type", text))
    elif kind and kind not in _TYPES:
        text = f'Unsupported value: "{kind}": supported values: "array", "boolean", "integer", '
        text += '"number", "object", "string"'
        errors.append(cause("FieldValueNotSupported", f"{path}.type", text))
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        errors += _rule_errors(rule, f"{path}.x-kubernetes-validations[{index}]")
    for name, child in (schema.get("properties") or {}).items():
        if not (is_root and name == "metadata"):
            errors += _schema_errors(child, f"{path}.properties[{name}]")
    for part in ("items", "additionalProperties"):
        errors += _schema_errors(schema.get(part), f"{path}.{part}")
    return errors


def _rule_errors(rule: Json, path: str) -> list[Json]:
    try:
        cel.Rule(rule)
    except cel.CompileError as error:
        text = f"Invalid value: {rule['rule']!r}: compilation failed: {error}"
        return [cause("FieldValueInvalid", f"{path}.rule", text)]
    return []


def check_crd(crd: Json) -> None:
    """Raise 422 when a CRD cannot be served."""
    errors = crd_errors(crd)
    if errors:
        name = crd["metadata"]["name"]
        raise invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, errors)


def establish(crd: Json) -> None:
    """The status of a CRD that is served."""
    status = crd.setdefault("status", {})
    status["acceptedNames"] = dict(_names(crd))
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    known = status.get("storedVersions") or []
    status["storedVersions"] = [*known, *(name for name in stored if name not in known)]
    if not status.get("conditions"):
        since = now_text()
        status["conditions"] = [
            {
                "lastTransitionTime": since,
                "message": "no conflicts found",
                "reason": "NoConflicts",
                "status": "True",
                "type": "NamesAccepted",
            },
            {
                "lastTransitionTime": since,
                "message": "the initial names have been accepted",
                "reason": "InitialNamesAccepted",
                "status": "True",
                "type": "Established",
            },
        ]


def _subresources(group: str, version: Json, kind: str) -> dict[str, Subresource]:
    asked = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    found = {}
    if asked.get("status") is not None:
        found["status"] = Subresource(
            name="status", kind=kind, group=group, version=version["name"], verbs=verbs
        )
    if asked.get("scale") is not None:
        found["scale"] = Subresource(
            name="scale", kind="Scale", group="autoscaling", version="v1", verbs=verbs
        )
    return found


def resources_of(crd: Json) -> list[Resource]:
    """The resources that a CRD adds, one for each served version."""
    spec, names = crd["spec"], _names(crd)
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            singular=names.get("singular") or names["kind"].lower(),
            kind=names["kind"],
            is_namespaced=spec["scope"] == "Namespaced",
            verbs=VERBS,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(spec["group"], version, names["kind"]),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            has_generation=True,
            custom={**version, "storageVersion": _storage_version(crd)},
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _storage_version(crd: Json) -> str:
    return str(next(v["name"] for v in crd["spec"]["versions"] if v.get("storage")))


_PATH = re.compile(r"\.([A-Za-z0-9_-]+)")


def selectable_paths(resource: Resource) -> tuple[str, ...]:
    """Fields of a custom resource that field selectors may use."""
    fields = (resource.custom or {}).get("selectableFields") or ()
    return tuple(field["jsonPath"].lstrip(".") for field in fields)


def node_of(resource: Resource) -> Node:
    """The root node of a custom resource."""
    return custom_node(resource.schema or {})
