"""
Extract the facts about the built-in kinds from a Kubernetes source tree.

    python -m sim_cluster.api.builtin.extract KUBERNETES_DIR API_DIR APIMACHINERY_DIR

The three folders are the Go modules `k8s.io/kubernetes`, `k8s.io/api` and `k8s.io/apimachinery`
of one version. The result, `facts.json` beside this file, holds names, types, list keys and
protobuf field numbers of the groups in `GROUPS`: facts of the wire format, no prose.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUPS = {
    "api__v1": "core/v1",
    "apis__apps__v1": "apps/v1",
    "apis__batch__v1": "batch/v1",
    "apis__autoscaling__v1": "autoscaling/v1",
    "apis__autoscaling__v2": "autoscaling/v2",
    "apis__policy__v1": "policy/v1",
    "apis__networking.k8s.io__v1": "networking/v1",
    "apis__rbac.authorization.k8s.io__v1": "rbac/v1",
    "apis__coordination.k8s.io__v1": "coordination/v1",
    "apis__discovery.k8s.io__v1": "discovery/v1",
    "apis__events.k8s.io__v1": "events/v1",
    "apis__scheduling.k8s.io__v1": "scheduling/v1",
    "apis__storage.k8s.io__v1": "storage/v1",
    "apis__admissionregistration.k8s.io__v1": "admissionregistration/v1",
    "apis__authentication.k8s.io__v1": "authentication/v1",
    "apis__authorization.k8s.io__v1": "authorization/v1",
    "apis__apiextensions.k8s.io__v1": "",
}
"""OpenAPI file of each served group, and the folder of its protobuf description."""

_MACHINERY = ("pkg/apis/meta/v1", "pkg/runtime", "pkg/api/resource", "pkg/util/intstr")
_REF = "#/components/schemas/"
_FIELD = re.compile(r"^\s+(optional |repeated |)([\w.]+|map<[\w.]+, *[\w.]+>) (\w+) = (\d+);")
_GO_FIELD = re.compile(r"^\t(\w+)?\s*(\*?)([\w.\[\]*]+)\s+`json:\"([^\"]*)\"")


def without_prose(node: Any) -> Any:
    """A schema without its descriptions, references shortened, single `allOf` unfolded."""
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "allOf" in node and len(node["allOf"]) == 1:
        rest = {key: value for key, value in node.items() if key != "allOf"}
        node = {**rest, **node["allOf"][0]}
    return {
        key: value.removeprefix(_REF)
        if isinstance(value, str) and key == "$ref"
        else without_prose(value)
        for key, value in node.items()
        if not (key == "description" and isinstance(value, str))
    }


def references(node: Any) -> Iterator[str]:
    """Names of all schemas that a schema refers to directly."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def schemas(kubernetes: Path) -> dict[str, Any]:
    """All schemas of the served groups, by their full name."""
    found: dict[str, Any] = {}
    for group in GROUPS:
        document = json.loads(
            (kubernetes / f"api/openapi-spec/v3/{group}_openapi.json").read_text()
        )
        for name, schema in document["components"]["schemas"].items():
            found[name] = without_prose(schema)
    return found


def go_fields(folder: Path) -> dict[str, dict[str, str]]:
    """For each Go struct: JSON name of a field -> `pointer`, `inline` or `value`."""
    structs: dict[str, dict[str, str]] = {}
    for source in folder.glob("*.go"):
        if source.name.startswith(("zz_", "generated")):
            continue
        for match in re.finditer(
            r"^type (\w+) struct \{\n(.*?)^\}", source.read_text(), re.MULTILINE | re.DOTALL
        ):
            structs[match[1]] = dict(_go_struct(match[2]))
    return structs


def _go_struct(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _GO_FIELD.match(line)
        if match is None:
            continue
        name, *options = match[4].split(",")
        if "inline" in options and not name:
            go_name = (match[1] or match[3]).rsplit(".", 1)[-1]
            yield go_name[0].lower() + go_name[1:], "inline"
        elif match[2]:
            yield name, "pointer"
        elif "omitempty" not in options:
            yield name, "always"
        else:
            yield name, "value"


def messages(proto: Path) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each protobuf message: field number -> [JSON name, repetition, type, how Go holds it]."""
    text = proto.read_text()
    package_match = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    package = package_match[1] if package_match else ""
    structs = go_fields(proto.parent)
    for match in re.finditer(r"^message (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        held = structs.get(match[1], {})
        fields: dict[str, list[str]] = {}
        for line in match[2].splitlines():
            field = _FIELD.match(line)
            if field is None:
                continue
            repetition, kind = field[1].strip(), _qualified(field[2], package)
            if kind.startswith("map<"):
                repetition, kind = "map", _qualified(kind[4:-1].split(",")[1].strip(), package)
            fields[field[4]] = [field[3], repetition, kind, held.get(field[3], "value")]
        yield f"{package}.{match[1]}", fields


def _qualified(kind: str, package: str) -> str:
    if kind.startswith("map<") or (kind[0].islower() and "." not in kind):
        return kind
    return kind[1:] if kind.startswith(".") else f"{package}.{kind}" if "." not in kind else kind


def resources(kubernetes: Path) -> list[dict[str, Any]]:
    """Every served resource with names, scope, verbs and subresources, as discovery lists them."""
    found: list[dict[str, Any]] = []
    for group in GROUPS:
        path = kubernetes / f"api/discovery/{group}.json"
        document = json.loads(path.read_text())
        for entry in document["resources"]:
            entry.pop("storageVersionHash", None)
            found.append({"groupVersion": document["groupVersion"], **entry})
    return found


def main() -> None:
    """Write `facts.json`."""
    kubernetes, api, machinery = (Path(argument) for argument in sys.argv[1:4])
    protos = [api / folder / "generated.proto" for folder in GROUPS.values() if folder]
    protos += [machinery / folder / "generated.proto" for folder in _MACHINERY]
    facts = {
        "resources": resources(kubernetes),
        "schemas": schemas(kubernetes),
        "messages": dict(entry for proto in protos for entry in messages(proto)),
    }
    target = Path(__file__).with_name("facts.json")
    target.write_text(json.dumps(facts, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{target}: {target.stat().st_size} bytes, {len(facts['resources'])} resources")


if __name__ == "__main__":
    main()
