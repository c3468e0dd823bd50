"""
Schemas in a form that is quick to walk.

One `Node` describes one place in an object, whether the schema came from a CRD (written out in
full) or from the built-in kinds (with references, which are followed when first needed).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sim_cluster.api.errors import Json
from sim_cluster.api.resources import schema_of

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_FREE_FORM = frozenset(
    {
        _META + "FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    }
)
_SAYS_NOTHING = frozenset(
    {
        "$ref", "type", "description", "nullable", "default", "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields", "x-kubernetes-map-type", "title", "example",
        "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key",
    }
)  # fmt: skip
"""Keywords that do not restrict a value."""

TYPE_META: Mapping[str, Json] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": _META + "ObjectMeta"},
}
"""Fields that every object has, whether its schema lists them or not."""


class Node:
    """The schema of one place in an object."""

    __slots__ = (
        "_items",
        "_properties",
        "_source",
        "_values",
        "default",
        "has_default",
        "is_embedded",
        "is_free",
        "is_int_or_string",
        "is_nullable",
        "keeps_unknown",
        "kind",
        "list_keys",
        "list_type",
        "map_type",
        "patch_key",
        "patch_strategy",
        "ref",
        "schema",
    )

    def __init__(self, schema: Json) -> None:
        self.ref: str = schema.get("$ref", "")
        target = schema_of(self.ref) if self.ref else schema
        self.schema = target
        self.list_type: str = schema.get("x-kubernetes-list-type", "")
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = schema.get("x-kubernetes-map-type") or target.get(
            "x-kubernetes-map-type", ""
        )
        self.patch_key: str = schema.get("x-kubernetes-patch-merge-key", "")
        self.patch_strategy: str = schema.get("x-kubernetes-patch-strategy", "")
        self.has_default = "default" in schema
        self.default: Any = schema.get("default")
        self.is_nullable = bool(schema.get("nullable"))
        self.is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.is_int_or_string = bool(target.get("x-kubernetes-int-or-string"))
        self.keeps_unknown = bool(target.get("x-kubernetes-preserve-unknown-fields"))
        self.kind: str = target.get("type", "")
        self._source = target
        self._properties: dict[str, Node] = {}
        self._items: Node | None = None
        self._values: Node | None = None
        self.is_free = self.ref in _FREE_FORM or (
            self.kind in {"object", ""}
            and _SAYS_NOTHING.issuperset(target)
            and (self.keeps_unknown or self.kind == "" or bool(self.ref))
        )

    @property
    def property_names(self) -> Mapping[str, Any]:
        """Declared properties by name (as raw schemas)."""
        found: Mapping[str, Any] = self._source.get("properties") or {}
        return found

    def member(self, name: str) -> "Node | None":
        """The node of a declared property, or of any value of a map."""
        node = self._properties.get(name)
        if node is None:
            raw = self.property_names.get(name)
            if raw is None:
                return self.values
            node = self._properties[name] = _shared(raw) if "$ref" in raw else Node(raw)
        return node

    @property
    def values(self) -> "Node | None":
        """The node of the values of a map; None when it is not a map."""
        if self._values is None:
            raw = self._source.get("additionalProperties")
            if isinstance(raw, dict):
                self._values = Node(raw)
        return self._values

    @property
    def items(self) -> "Node | None":
        """The node of the items of a list."""
        if self._items is None:
            raw = self._source.get("items")
            if isinstance(raw, dict):
                self._items = _shared(raw) if "$ref" in raw else Node(raw)
        return self._items

    @property
    def is_map(self) -> bool:
        """Whether keys are free and values share one schema."""
        return not self.property_names and isinstance(
            self._source.get("additionalProperties"), dict
        )

    @property
    def is_atomic(self) -> bool:
        """Whether apply treats the place as one value: owned, and replaced, as a whole."""
        if self.kind == "array":
            return self.list_type not in {"map", "set"}
        return self.map_type == "atomic" or (self.is_free and not self.keeps_unknown)


_NODES: dict[str, Node] = {}


def _shared(raw: Json) -> Node:
    if len(raw) > 1:
        return Node(raw)
    node = _NODES.get(raw["$ref"])
    if node is None:
        node = _NODES[raw["$ref"]] = Node(raw)
    return node


@lru_cache(maxsize=512)
def builtin_node(name: str) -> Node:
    """The node of a built-in type by its full name."""
    return _shared({"$ref": name})


def custom_node(schema: Json) -> Node:
    """The root node of a CRD version; `apiVersion`, `kind` and `metadata` are always there."""
    properties = {**(schema.get("properties") or {}), **TYPE_META}
    return Node({"type": "object", **schema, "properties": properties})
