"""Pods out of templates, and the hash by which a template is known."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING

from sim_cluster.controllers.view import reference_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.api_client import Object
    from sim_cluster.resources import Resource

TEMPLATE_HASH = "pod-template-hash"
# No vowels and no digits that look like letters, so that no hash spells a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10


def pod_of(template: Object, owner: Object, resource: Resource) -> Object:
    """Make the Pod that an owner's template describes; it still lacks a name."""
    metadata = template.get("metadata") or {}
    return {
        "metadata": {
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": list(metadata.get("finalizers") or ()),
            "ownerReferences": [dict(reference_to(owner, resource))],
        },
        "spec": copy.deepcopy(template["spec"]),
    }


def hash_of(template: Object, *, collisions: int = 0) -> str:
    """Name a template's content in ten characters; `collisions` gives the same content another."""
    text = json.dumps([template, collisions] if collisions else template, sort_keys=True)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)


def without_hash(template: Object) -> Object:
    """Return the template as its author wrote it."""
    return with_labels(template, {TEMPLATE_HASH: None})


def with_labels(template: Object, changes: Mapping[str, str | None]) -> Object:
    """Return a copy with labels set, or removed where the value is None."""
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), **changes}
    metadata["labels"] = {key: value for key, value in labels.items() if value is not None}
    return {**template, "metadata": metadata}
