"""
Pages of lists, decoded field by field: of thousands of objects only what is needed becomes Python.

A type names the fields that it wants; all others are skipped without being built.
"""

from typing import Any, Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class Listed(msgspec.Struct, frozen=True, gc=False):
    """Metadata of a list, and of a bookmark."""

    following: str = msgspec.field(name="continue", default="")
    version: str = msgspec.field(name="resourceVersion", default="")


class Page(msgspec.Struct, Generic[Item]):
    """One page of a list."""

    metadata: Listed = Listed()
    items: list[Item] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch; what its object is depends on its type."""

    kind: str = msgspec.field(name="type")
    content: msgspec.Raw = msgspec.field(name="object")


class Bookmark(msgspec.Struct):
    """How far a watch has come."""

    metadata: Listed = Listed()


class Failure(msgspec.Struct):
    """Why a watch ends."""

    code: int = 0
    message: str = ""


def page_reader(item: type[Item]) -> "msgspec.json.Decoder[Page[Item]]":
    """Make a decoder of pages; nulls and missing fields are as in the type of the items."""
    whole: Any = Page[item]  # type: ignore[valid-type]
    return msgspec.json.Decoder(whole)
