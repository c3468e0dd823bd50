"""
Schemas in a form that is quick to walk.

One `Node` describes one place in an object, whether the schema came from a CRD (written out in
full) or from the built-in kinds (with references, which are followed when first needed).
"""

from collections.abc import Iterator, Mapping
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
        "_nodes",
        "_raw_items",
        "_raw_values",
        "_values",
        "default",
        "has_default",
        "is_atomic",
        "is_embedded",
        "is_free",
        "is_int_or_string",
        "is_map",
        "is_nullable",
        "is_restricted",
        "keeps_unknown",
        "kind",
        "list_keys",
        "list_type",
        "map_type",
        "patch_key",
        "patch_strategy",
        "property_names",
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
        self.property_names: Mapping[str, Any] = target.get("properties") or {}
        """Declared properties by name (as raw schemas)."""
        self.is_restricted = not _SAYS_NOTHING.issuperset(target)
        """Whether the schema says more of a value than its type."""
        self.is_free = self.ref in _FREE_FORM or (
            self.kind in {"object", ""}
            and not self.is_restricted
            and (self.keeps_unknown or self.kind == "" or bool(self.ref))
        )
        self._read_children(target)
        self.is_atomic = self._is_one_value()

    def _read_children(self, target: Json) -> None:
        """Note the raw schemas below; they become nodes when first needed."""
        values, items = target.get("additionalProperties"), target.get("items")
        self._raw_values: Json | None = values if isinstance(values, dict) else None
        self._raw_items: Json | None = items if isinstance(items, dict) else None
        self._nodes: dict[str, Node] = {}
        self._values: Node | None = None
        self._items: Node | None = None
        self.is_map = not self.property_names and self._raw_values is not None
        """Whether keys are free and values share one schema."""

    def _is_one_value(self) -> bool:
        """Whether apply treats the place as one value: owned, and replaced, as a whole."""
        if self.kind == "array":
            return self.list_type not in {"map", "set"}
        return self.map_type == "atomic" or (self.is_free and not self.keeps_unknown)

    def member(self, name: str) -> "Node | None":
        """The node of a declared property, or of any value of a map."""
        node = self._nodes.get(name)
        if node is None:
            raw = self.property_names.get(name)
            if raw is None:
                return self.values
            node = self._nodes[name] = _shared(raw) if "$ref" in raw else Node(raw)
        return node

    @property
    def values(self) -> "Node | None":
        """The node of the values of a map; None when it is not a map."""
        if self._values is None and self._raw_values is not None:
            self._values = Node(self._raw_values)
        return self._values

    @property
    def items(self) -> "Node | None":
        """The node of the items of a list."""
        if self._items is None and self._raw_items is not None:
            raw = self._raw_items
            self._items = _shared(raw) if "$ref" in raw else Node(raw)
        return self._items

    def children(self) -> Iterator["Node"]:
        """All nodes right below."""
        found = (*map(self.member, self.property_names), self.items, self.values)
        return (node for node in found if node is not None)


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
